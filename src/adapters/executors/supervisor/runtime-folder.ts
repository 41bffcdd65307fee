import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assertReachable, sandboxUser } from "../../sandbox/identity.js";
import { claimFolder } from "./abandoned-folders.js";

/** A Unix socket's path may have 107 bytes; ours adds a little to its folder. */
const longestFolder = 80;

/**
 * What a supervisor needs for its own life only: its socket and the pipes of its stages (for nobody else), and the few
 * files that tell a sandbox who it is (for every sandbox).
 */
export interface RuntimeFolder {
  readonly path: string;
  readonly socket: string;
  readonly pipes: string;
  readonly identity: string;
}

const identityFiles = {
  passwd: "root:x:0:0:root:/root:/bin/sh\ntrialist:x:1000:1000:trialist:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
  group: "root:x:0:\ntrialist:x:1000:\nnogroup:x:65534:\n",
  hosts: "127.0.0.1 localhost sandbox\n::1 localhost\n",
};

function usableFolder(folder: string): boolean {
  if (folder.length > longestFolder) return false;
  try {
    assertReachable([join(folder, ".")]);
    return true;
  } catch {
    return false;
  }
}

function parentFolder(): string {
  // The one of the user's session goes away with it and is closed to the sandbox's user when we are root.
  const candidates = [...(sandboxUser() === null ? [process.env["XDG_RUNTIME_DIR"] ?? ""] : []), tmpdir(), "/tmp"];
  return candidates.find((folder) => folder !== "" && usableFolder(folder)) ?? "/tmp";
}

export function makeRuntimeFolder(): RuntimeFolder {
  const path = mkdtempSync(join(parentFolder(), "trialist-"));
  // Others may pass through to the identity files and see nothing on the way.
  chmodSync(path, 0o711);
  const own = join(path, "own");
  const identity = join(path, "identity");
  mkdirSync(own, { mode: 0o700 });
  claimFolder(path);
  mkdirSync(identity, { mode: 0o755 });
  for (const [name, text] of Object.entries(identityFiles)) writeFileSync(join(identity, name), text, { mode: 0o644 });
  return { path, socket: join(own, "socket"), pipes: own, identity };
}

export function removeRuntimeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true });
}
