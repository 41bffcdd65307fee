import { chmod, chown, copyFile, type FileHandle, mkdir, open, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Mount } from "../../../core/ports/executor.js";
import type { AgentSession } from "../../../core/ports/session-agent.js";
import { giveToSandbox, sandboxUser } from "../../sandbox/identity.js";

/** Where things lie inside. */
export const inside = { work: "/trialist/desk", sockets: "/trialist/sockets", bridge: "/trialist/bridge" } as const;
export const mcpUrl = "http://127.0.0.1:4002/mcp";
export const modelUrl = "http://127.0.0.1:4001";

/** The folders of one session of an agent, on the host. */
export class SessionFolders {
  private sockets: FileHandle | null = null;

  constructor(readonly root: string) {}

  get work(): string {
    return join(this.root, "work");
  }

  get mounts(): Mount[] {
    return [
      { source: this.work, target: inside.work, mode: "read-write" },
      { source: join(this.root, "sockets"), target: inside.sockets, mode: "read-only" },
      { source: join(this.root, "bridge"), target: inside.bridge, mode: "read-only" },
    ];
  }

  /** Made anew, with what the session starts from. */
  async layOut(session: AgentSession, command: string, token: string): Promise<void> {
    await this.remove();
    for (const folder of ["work", "sockets", "bridge"]) await mkdir(join(this.root, folder), { recursive: true });
    for (const { path, bytes, executable } of session.files) await this.put(path, bytes, executable);
    // Last, and over anything: a candidate may hold files of these names.
    await this.put("TASK.md", session.task);
    await this.put("mcp.json", `${JSON.stringify(mcpConfiguration(token), null, 2)}\n`);
    await giveToSandbox(this.work);
    await copyFile(bridgeProgram(), join(this.root, "bridge", "bridge.mjs"));
    await writeFile(join(this.root, "bridge", "agent.sh"), `${command}\n`);
    await giveToSandbox(join(this.root, "bridge"));
  }

  private async put(path: string, content: string | Uint8Array, executable = false): Promise<void> {
    const target = join(this.work, path);
    await mkdir(dirname(target), { recursive: true });
    await rm(target, { recursive: true, force: true });
    await writeFile(target, content, { mode: executable ? 0o755 : 0o644 });
  }

  /** Lets `listen` make the sockets, which nobody but the sandbox's user may reach: behind one of them somebody pays. */
  async listening(listen: (pathOf: (name: string) => string) => Promise<void>): Promise<void> {
    const folder = join(this.root, "sockets");
    // A path by the folder's descriptor is short, however deep the folder lies: sockets take no more than 107 bytes. It stays
    // open, since a server that closes removes its socket by the same path.
    this.sockets = await open(folder, "r");
    const { fd } = this.sockets;
    await listen((name) => `/proc/self/fd/${fd}/${name}`);
    const user = sandboxUser();
    for (const path of [join(folder, "model.sock"), join(folder, "mcp.sock"), folder]) {
      await chmod(path, 0o700);
      if (user !== null) await chown(path, user.uid, user.gid);
    }
  }

  async remove(): Promise<void> {
    await this.sockets?.close();
    this.sockets = null;
    await rm(this.root, { recursive: true, force: true });
  }
}

/** As Claude Code reads it. */
function mcpConfiguration(token: string): unknown {
  return { mcpServers: { trialist: { type: "http", url: mcpUrl, headers: { Authorization: `Bearer ${token}` } } } };
}

/** The same text built and as a source: no types are written in it. */
function bridgeProgram(): string {
  const here = fileURLToPath(import.meta.url);
  return join(dirname(here), here.endsWith(".ts") ? "bridge-main.ts" : "bridge-main.js");
}
