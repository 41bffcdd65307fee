import { lstatSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectExisting } from "./connection.js";

/** Whether a supervisor works for this root now. */
export async function isSupervised(root: string): Promise<boolean> {
  const connection = await connectExisting(root).catch(() => null);
  connection?.close();
  return connection !== null;
}

/** Folders that supervisors which were killed have left: ours, of the form that they make, and nobody listens there. */
export async function abandonedRuntimeFolders(now: number, youngMs: number): Promise<string[]> {
  const parents = new Set([process.env["XDG_RUNTIME_DIR"] ?? "", tmpdir(), "/tmp"].filter((folder) => folder !== ""));
  const found: string[] = [];
  for (const parent of parents) {
    for (const name of namesIn(parent)) {
      const folder = join(parent, name);
      if (/^trialist-[A-Za-z0-9]{6}$/.test(name) && isOurs(folder, now, youngMs) && !(await answers(join(folder, "own", "socket"))))
        found.push(folder);
    }
  }
  return found;
}

function isOurs(folder: string, now: number, youngMs: number): boolean {
  const facts = lstatSync(folder, { throwIfNoEntry: false });
  if (facts?.isDirectory() !== true || facts.uid !== process.getuid?.() || now - facts.mtimeMs <= youngMs) return false;
  return namesIn(folder).sort().join(" ") === "identity own" && namesIn(join(folder, "identity")).includes("passwd");
}

function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const attempt = connect(socket);
    attempt.once("connect", () => {
      attempt.destroy();
      resolve(true);
    });
    attempt.once("error", () => resolve(false));
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
