import { randomUUID } from "node:crypto";
import { chmodSync, lstatSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { TrialistError } from "../../core/protocol/errors.js";
import { LineRefusedError, linesOf } from "./lines.js";
import { isOwned, type OwnerInfo, readOwnerInfo } from "./owner.js";
import { makeDurableFolder, socketPath } from "./run-files.js";

/** Longest path that every system takes for a socket (104 bytes on macOS, 108 on Linux, with the closing zero). */
const maxSocketPathBytes = 100;
/** Of a command where nobody says otherwise, and of every answer. */
const maxMessageLength = 1024 * 1024;
const idleMs = 60_000;
const defaultTimeoutMs = 30_000;
const startGraceMs = 1000;

const request = z.strictObject({ id: z.string().min(1).max(100), command: z.unknown() });
const response = z.discriminatedUnion("ok", [
  z.strictObject({ id: z.string().max(100).nullable(), ok: z.literal(true), result: z.unknown() }),
  z.strictObject({
    id: z.string().max(100).nullable(),
    ok: z.literal(false),
    error: z.strictObject({ name: z.string(), message: z.string() }),
  }),
]);
type Response = z.infer<typeof response>;

/** Performs a command in the owner's process. The result must be JSON; an error reaches the asker by name and message. */
export type CommandHandler = (command: unknown) => unknown;

interface MessageOptions {
  /** Most characters of a command. */
  readonly maxLength?: number;
}

/** The owner listens. `close` stops it and removes the socket. */
export interface OwnerServer {
  readonly path: string;
  close(): Promise<void>;
}

/** The owner refused or failed a command; `remoteName` is its error's name. */
export class OwnerCommandError extends Error {
  override readonly name = "OwnerCommandError";
  /** The owner refused, or this command is none: in both cases nothing was changed. */
  readonly kind = "refused";
  constructor(
    readonly remoteName: string,
    message: string,
  ) {
    super(message);
  }
}

/** The run has an owner who did not answer. Whether the command was performed is known only when it was never sent. */
export class OwnerSilentError extends TrialistError {
  readonly kind = "infrastructure";
  constructor(
    readonly owner: OwnerInfo | null,
    readonly sent: boolean,
    where: string,
    found: string,
    options?: { cause?: unknown },
  ) {
    const who = owner === null ? "the run's owner" : `process ${owner.pid} on ${owner.host}`;
    const outcome = sent
      ? "The command may or may not have been performed: look at the run before you repeat it."
      : "The command was not sent: try again in a moment.";
    super({ expected: `an answer from ${who}`, found, where, todo: outcome }, options);
  }
}

/**
 * Listens for commands on `owner.sock` in the run's folder, for this user alone. The caller owns the run, so a socket that
 * lies there is a dead owner's and is replaced. Where the path is too long, or the file system has no sockets, the socket lies
 * in a private temporary folder that `owner.sock.path` names.
 */
export async function serveOwner(
  runFolder: string,
  handler: CommandHandler,
  { maxLength = maxMessageLength }: MessageOptions = {},
): Promise<OwnerServer> {
  const wanted = resolve(socketPath(runFolder));
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    void converse(socket, handler, maxLength);
  });
  server.maxConnections = 64;
  makeDurableFolder(runFolder);
  removeSocket(wanted);
  const path = await listenSomewhere(server, wanted);
  const close = async (): Promise<void> => {
    const ended = new Promise<void>((done) => server.close(() => done()));
    for (const socket of sockets) socket.destroy();
    await ended;
    removeSocket(wanted);
  };
  return { path, close };
}

/**
 * Sends a command to the run's owner and returns its result, wrapped; null when nobody owns the run.
 * @throws OwnerCommandError when the owner refused or failed it, OwnerSilentError when it did not answer
 */
export async function askOwner(
  runFolder: string,
  command: unknown,
  { timeoutMs = defaultTimeoutMs, maxLength = maxMessageLength }: MessageOptions & { readonly timeoutMs?: number } = {},
): Promise<{ readonly result: unknown } | null> {
  const message = JSON.stringify({ id: randomUUID(), command });
  if (message.length > maxLength && isOwned(runFolder)) {
    throw new LineRefusedError({
      expected: `a command of at most ${maxLength} characters`,
      found: `${message.length}`,
      where: "a command to the owner",
      todo: "Pause the run and wait for its process to end: then there is no such limit.",
    });
  }
  const socket = await reach(runFolder);
  if (socket === null) return null;
  const answer = await exchange(socket, message, timeoutMs, runFolder);
  if (answer.ok) return { result: answer.result };
  throw new OwnerCommandError(answer.error.name, answer.error.message);
}

async function converse(socket: Socket, handler: CommandHandler, maxLength: number): Promise<void> {
  socket.setTimeout(idleMs, () => socket.destroy());
  socket.on("error", () => socket.destroy());
  try {
    const chunks = socket.iterator({ destroyOnReturn: false });
    for await (const line of linesOf(chunks, maxLength, "a command")) {
      socket.setTimeout(0);
      const answer = await respond(line, handler);
      if (!socket.writable) return;
      socket.write(`${answer}\n`);
      socket.setTimeout(idleMs);
    }
    socket.end();
  } catch (error) {
    if (socket.writable) sayAndHangUp(socket, failure(null, error));
    else socket.destroy();
  }
}

/** What still comes in is thrown away for a second: a socket closed over unread bytes loses its last answer. */
function sayAndHangUp(socket: Socket, answer: string): void {
  socket.end(`${answer}\n`);
  socket.resume();
  setTimeout(() => socket.destroy(), 1000).unref();
}

async function respond(line: string, handler: CommandHandler): Promise<string> {
  let id: string | null = null;
  try {
    const asked = request.parse(JSON.parse(line));
    id = asked.id;
    const answer = JSON.stringify({ id, ok: true, result: (await handler(asked.command)) ?? null } satisfies Response);
    if (answer.length <= maxMessageLength) return answer;
    throw new LineRefusedError({
      expected: `a result of at most ${maxMessageLength} characters`,
      found: `${answer.length}`,
      where: "the owner's answer (the command was performed)",
    });
  } catch (error) {
    return failure(id, error);
  }
}

function failure(id: string | null, error: unknown): string {
  const name = error instanceof Error ? error.name : "Error";
  const message = (error instanceof Error ? error.message : String(error)).slice(0, 64 * 1024);
  return JSON.stringify({ id, ok: false, error: { name, message } } satisfies Response);
}

async function listenSomewhere(server: Server, wanted: string): Promise<string> {
  if (Buffer.byteLength(wanted) <= maxSocketPathBytes) {
    try {
      return await listen(server, wanted);
    } catch (error) {
      if (!isCode(error, "EPERM", "EOPNOTSUPP", "ENOTSUP", "EINVAL", "ENAMETOOLONG")) throw error;
    }
  }
  const folder = mkdtempSync(join(tmpdir(), "trialist-"));
  const path = await listen(server, join(folder, basename(wanted)));
  const temporary = `${pointerOf(wanted)}.tmp`;
  writeFileSync(temporary, path, { mode: 0o600 });
  renameSync(temporary, pointerOf(wanted));
  return path;
}

/** Binds so that the socket is never open to others, not even for a moment. */
async function listen(server: Server, path: string): Promise<string> {
  const mask = withUmask(0o177);
  try {
    await new Promise<void>((done, fail) => {
      server.once("error", fail);
      server.listen(path, () => {
        server.off("error", fail);
        done();
      });
      mask.restore();
    });
  } finally {
    mask.restore();
  }
  chmodSync(path, 0o600);
  return path;
}

/** Worker threads may not change the mask; there the mode is set right after. */
function withUmask(value: number): { restore(): void } {
  try {
    const before = process.umask(value);
    return { restore: () => void process.umask(before) };
  } catch {
    return { restore: () => undefined };
  }
}

/** Connects to the owner's socket; null when nobody owns the run. An owner that is just starting gets a moment. */
async function reach(runFolder: string): Promise<Socket | null> {
  const deadline = Date.now() + startGraceMs;
  for (;;) {
    const path = whereSocketIs(resolve(socketPath(runFolder)));
    const attempt = path === null ? new Error("there is no socket") : await open(path).catch((error: unknown) => error);
    if (typeof attempt === "object" && attempt !== null && "destroy" in attempt) return attempt as Socket;
    if (!isOwned(runFolder)) return null;
    if (Date.now() > deadline) {
      const found = attempt instanceof Error ? attempt.message : String(attempt);
      throw new OwnerSilentError(readOwnerInfo(runFolder), false, runFolder, found, { cause: attempt });
    }
    await sleep(50);
  }
}

async function open(path: string): Promise<Socket> {
  return new Promise((done, fail) => {
    const socket = connect(path);
    socket.once("error", fail);
    socket.once("connect", () => {
      socket.off("error", fail);
      done(socket);
    });
  });
}

async function exchange(socket: Socket, message: string, timeoutMs: number, runFolder: string): Promise<Response> {
  const silent = (found: string, cause?: unknown): OwnerSilentError =>
    new OwnerSilentError(readOwnerInfo(runFolder), true, runFolder, found, { cause });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    socket.destroy();
  }, timeoutMs);
  try {
    socket.write(`${message}\n`);
    for await (const line of linesOf(socket, maxMessageLength + 1000, "the owner's answer")) return response.parse(JSON.parse(line));
  } catch (error) {
    throw silent(late ? `none within ${timeoutMs} ms` : "a broken answer", error);
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
  throw silent(late ? `none within ${timeoutMs} ms` : "a closed connection");
}

/** Path of the socket to connect to. A pointer is followed only into a folder that is this user's alone. */
function whereSocketIs(wanted: string): string | null {
  let pointed: string;
  try {
    pointed = readFileSync(pointerOf(wanted), "utf8");
  } catch {
    return lstatSync(wanted, { throwIfNoEntry: false }) === undefined ? null : wanted;
  }
  const folder = lstatSync(dirname(pointed), { throwIfNoEntry: false });
  const isPrivate = folder?.isDirectory() === true && (folder.mode & 0o077) === 0 && folder.uid === process.getuid?.();
  return isPrivate && basename(pointed) === basename(wanted) ? pointed : null;
}

function removeSocket(wanted: string): void {
  const pointed = whereSocketIs(wanted);
  if (pointed !== null && pointed !== wanted) rmSync(dirname(pointed), { recursive: true, force: true });
  rmSync(wanted, { force: true });
  rmSync(pointerOf(wanted), { force: true });
}

function pointerOf(wanted: string): string {
  return `${wanted}.path`;
}

function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code);
}
