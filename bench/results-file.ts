import { readFileSync, writeFileSync } from "node:fs";
import { cpus, getPriority, loadavg, release, totalmem } from "node:os";
import { fileURLToPath } from "node:url";

const file = fileURLToPath(new URL("./RESULTS.md", import.meta.url));
/** Begins the part about another program; what is before it is about limits of the machine. */
export const peerHeading = "## Beside PyPI's aideml";

/** Writes one part of bench/RESULTS.md and leaves the other as it is: the two are measured by commands of their own. */
export function writeResults(parts: { readonly limits?: string; readonly peer?: string }): void {
  const text = readFileSync(file, "utf8");
  const at = text.indexOf(peerHeading);
  const [limits, peer] = at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at)];
  const wanted = [parts.limits ?? limits, parts.peer ?? peer].map((part) => part.trim()).filter((part) => part !== "");
  writeFileSync(file, `${wanted.join("\n\n")}\n`);
}

/** What a reader needs to know to compare: command, date, machine, load. */
export function circumstances(command: string): string {
  const processors = cpus();
  const loads = loadavg().map((load) => load.toFixed(1));
  return `- Command: \`${command.trim()}\`
- Date: ${new Date().toISOString().slice(0, 10)}
- Machine: ${processors.length} × ${processors[0]?.model.trim() ?? "unknown"}, ${(totalmem() / 2 ** 30).toFixed(1)} GiB, Linux ${release()}, Node.js ${process.versions.node}
- Priority (nice) ${getPriority()}, load average at the end: ${loads.join(", ")}`;
}
