import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { fromWire, SupervisorError } from "./errors.js";
import { type Hello, onMessages, protocolVersion, type Reply, type Request, type SupervisorAddress, send } from "./protocol.js";
import { addressFile, type SupervisorOptions } from "./supervisor-options.js";

const patienceMs = 30_000;
const pauseMs = 20;

/** The supervisor went away while it was asked; what it was doing is found on disk. */
export class ConnectionLostError extends SupervisorError {}

type Asked = Request extends infer Each ? (Each extends { seq: number } ? Omit<Each, "seq"> : never) : never;

/** An open conversation with a supervisor. */
export class Connection {
  private next = 1;
  private readonly waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();

  constructor(private readonly socket: Socket) {
    socket.unref();
    onMessages<Reply>(socket, (reply) => this.receive(reply));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.lost());
  }

  get open(): boolean {
    return !this.socket.destroyed;
  }

  ask(request: Asked): Promise<unknown> {
    const seq = this.next;
    this.next += 1;
    return new Promise((resolve, reject) => {
      if (!this.open) {
        reject(lostError());
        return;
      }
      this.waiting.set(seq, { resolve, reject });
      // Only an unanswered question keeps our process alive.
      this.socket.ref();
      send(this.socket, { ...request, seq } as Request);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private receive(reply: Reply): void {
    const waiting = this.waiting.get(reply.seq);
    this.waiting.delete(reply.seq);
    if (this.waiting.size === 0) this.socket.unref();
    if ("error" in reply) waiting?.reject(fromWire(reply.error));
    else waiting?.resolve(reply.ok);
  }

  private lost(): void {
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const each of waiting) each.reject(lostError());
  }
}

function lostError(): ConnectionLostError {
  return new ConnectionLostError({
    expected: "an answer from the supervisor of executions",
    found: "that it ended before it answered",
    todo: "Its executions are gone; start them again as new attempts.",
  });
}

/** The supervisor that runs for this root, or null. */
export async function connectExisting(root: string): Promise<Connection | null> {
  let address: SupervisorAddress;
  try {
    address = JSON.parse(readFileSync(join(root, addressFile), "utf8")) as SupervisorAddress;
  } catch {
    return null;
  }
  const socket = await new Promise<Socket | null>((resolve) => {
    const attempt = connect(address.socket);
    attempt.once("connect", () => resolve(attempt));
    attempt.once("error", () => resolve(null));
  });
  if (socket === null) return null;
  const connection = new Connection(socket);
  try {
    assertSameProtocol((await connection.ask({ op: "hello" })) as Hello, root);
    return connection;
  } catch (error) {
    connection.close();
    if (error instanceof ConnectionLostError) return null;
    throw error;
  }
}

function assertSameProtocol(hello: Hello, root: string): void {
  if (hello.protocol === protocolVersion) return;
  throw new SupervisorError({
    where: root,
    expected: `a supervisor that speaks protocol ${protocolVersion}`,
    found: `process ${hello.pid}, which speaks protocol ${hello.protocol} of another trialist`,
    todo: "Let what it runs come to its end, or end it; then try again.",
  });
}

/** Finds the supervisor, or starts one. Several callers may do so at once: one process wins, all talk to it. */
export async function connectOrStart(options: SupervisorOptions): Promise<Connection> {
  const begun = performance.now();
  for (;;) {
    const existing = await connectExisting(options.root);
    if (existing !== null) return existing;
    const failure = await startSupervisor(options);
    if (failure === null) continue;
    if (failure === "taken" && performance.now() - begun < patienceMs) {
      // Another one is beginning, or just ending.
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      continue;
    }
    throw new SupervisorError({
      where: join(options.root, "supervisor.log"),
      expected: "that a supervisor for executions starts",
      found: failure === "taken" ? "another process that holds its lock and does not answer" : failure,
      todo: "Read that file; `trialist doctor` looks for what the machine lacks.",
    });
  }
}

/** Starts a process of its own session. Null when it listens, "taken" when another one has the lock, else what went wrong. */
async function startSupervisor(options: SupervisorOptions): Promise<string | null> {
  mkdirSync(options.root, { recursive: true, mode: 0o700 });
  const log = openSync(join(options.root, "supervisor.log"), "a", 0o600);
  try {
    const child = spawn(process.execPath, [...supervisorProgram(), JSON.stringify(options)], {
      cwd: "/",
      detached: true,
      stdio: ["ignore", "pipe", log],
      env: supervisorEnvironment(),
    });
    child.unref();
    return await firstWord(child);
  } finally {
    closeSync(log);
  }
}

/** Nothing of ours that could be a secret: the supervisor's environment can be read by every process of this user. */
function supervisorEnvironment(): Record<string, string> {
  const names = ["PATH", "TMPDIR", "XDG_RUNTIME_DIR", "LANG", "TZ"];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
}

function firstWord(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    let text = "";
    const done = (answer: string | null): void => {
      child.stdout?.destroy();
      resolve(answer);
    };
    child.stdout?.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      if (!text.includes("\n")) return;
      done(text.startsWith("ready") ? null : "taken");
    });
    child.once("error", (error) => done(error.message));
    child.once("exit", (code, signal) => done(text.startsWith("taken") ? "taken" : `it ended with ${signal ?? `exit code ${code}`}`));
  });
}

/** Built, we are JavaScript; from the sources, the child needs the same loader that reads TypeScript for us. */
function supervisorProgram(): string[] {
  const here = fileURLToPath(import.meta.url);
  const extension = here.endsWith(".ts") ? ".ts" : ".js";
  const program = fileURLToPath(new URL(`./supervisor-main${extension}`, import.meta.url));
  if (extension === ".js") return [program];
  const loader = createRequire(import.meta.url).resolve("tsx");
  return ["--import", pathToFileURL(loader).href, program];
}
