import { readFile } from "node:fs/promises";
import { RefusedError } from "../../core/protocol/errors.js";
import { logicalLines } from "./lock-file.js";

/**
 * The first line of a lock by which a package could be built, or come from elsewhere than this machine's own registry; null
 * when there is none. Strict, since pip reads more into a file than we do: it splits lines at other characters too, decodes
 * as a comment says, knows abbreviated options, and one that is fine by itself may take back what the command line said.
 */
export function lineBeyondWheels(text: string): string | null {
  const odd = text.split("\n").find((line) => !/^[\t\x20-\x7e]*\r?$/.test(line) || /^\s*#.*coding[:=]/.test(line));
  return odd ?? logicalLines(text).find((line) => !isPlain(line.text))?.text ?? null;
}

/** @throws RefusedError for a lock that would have a package built, or fetched from where it says */
export async function refuseBuilds(lockFile: string): Promise<void> {
  const line = lineBeyondWheels(await readFile(lockFile, "utf8"));
  if (line === null) return;
  throw new RefusedError({
    expected: "a lock of packages that need no building, from this machine's own registry",
    found: JSON.stringify(line.trim().slice(0, 200)),
    where: lockFile,
    todo: "Building a package runs its code outside of the sandbox: make the environment by hand if you trust it.",
  });
}

/** `NAME[EXTRAS]==VERSION ; MARKER` with hashes, or an option that takes nothing back. */
function isPlain(line: string): boolean {
  if (/^(--require-hashes|--only-binary[= ]:all:)$/.test(line)) return true;
  const words = line.split(/\s+/);
  const [options, others] = [words.filter((word) => word.startsWith("-")), words.filter((word) => !word.startsWith("-"))];
  return (
    options.every((option) => /^--hash=[a-z0-9]+:[0-9a-f]+$/.test(option)) &&
    /^[A-Za-z0-9][\w.-]*(\[[\w ,.-]*\])? ?== ?[\w.!+-]+ ?(;[\w .,'"<>=!~()*+-]*)?$/.test(others.join(" "))
  );
}
