import { randomBytes } from "node:crypto";
import { closeSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { Supervisor } from "./supervisor/server.js";
import type { SupervisorOptions } from "./supervisor-options.js";

/**
 * One supervisor per root folder: the lock is a name among the kernel's abstract sockets, which can be taken by one
 * process at a time and is free the moment that process is dead. It carries no messages; anybody on the machine could
 * connect to it.
 */
async function takeLock(root: string): Promise<boolean> {
  const lock = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    lock.once("error", (error: NodeJS.ErrnoException) => (error.code === "EADDRINUSE" ? resolve(false) : reject(error)));
    lock.listen(`\0trialist-${lockName(root)}`, () => {
      lock.unref();
      resolve(true);
    });
  });
}

/** A random name, so that nobody who cannot read the folder can take its lock. */
function lockName(root: string): string {
  const file = join(root, "lock-name");
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, randomBytes(16).toString("hex"), { mode: 0o600 });
  try {
    // A link appears with its content, and only one of several can be the first.
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return readFileSync(file, "utf8");
}

/**
 * Whoever started us may have left descriptors open that a child inherits: a lock, a terminal, a pipe of a build server.
 * A stage must not get them. Our runtime marks its own as not to be inherited, which tells the two apart.
 */
function closeInheritedDescriptors(): void {
  const closedOnExec = 0o2000000;
  for (const name of readdirSync("/proc/self/fd")) {
    const descriptor = Number(name);
    if (descriptor <= 2) continue;
    try {
      const flags = /^flags:\s+(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, "latin1"))?.[1] ?? "0";
      if ((Number.parseInt(flags, 8) & closedOnExec) === 0) closeSync(descriptor);
    } catch {
      // The one that listed them, closed by now.
    }
  }
}

async function main(): Promise<void> {
  closeInheritedDescriptors();
  const options = JSON.parse(process.argv[2] ?? "") as SupervisorOptions;
  process.title = "trialist-supervisor";
  process.chdir("/");
  // Copies of outputs must be readable for the next sandbox; what is private says so itself.
  process.umask(0o022);
  mkdirSync(options.root, { recursive: true, mode: 0o700 });
  if (!(await takeLock(options.root))) {
    process.stdout.write("taken\n");
    return;
  }
  const supervisor = new Supervisor(options, () => process.exit(0));
  await supervisor.begin();
  process.stdout.write("ready\n");
}

// Whoever reads our output may be gone at any time; that must not end us.
process.stdout.on("error", () => undefined);
await main();
