import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { acquireOwner, isOwned, RunOwnedError, readOwnerInfo } from "../../src/adapters/ledger/owner.js";
import { askOwner, OwnerCommandError, OwnerSilentError, serveOwner } from "../../src/adapters/ledger/owner-socket.js";
import { openSqliteLedger } from "../../src/adapters/ledger/sqlite-ledger.js";
import { LedgerNotWritableError, StaleOwnerError } from "../../src/core/ports/ledger-errors.js";
import { made } from "./ledger-contract.js";
import { Project } from "./ledger-fixture.js";

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.remove());

/** Another process that owns the run until it is killed. */
async function otherOwner(): Promise<ChildProcess> {
  const script = join(import.meta.dirname, "ledger-holder.ts");
  const child = spawn(process.execPath, ["--import", "tsx", script, project.run], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return child;
}

describe("ownership", () => {
  it("is exclusive in one process, and free after release", () => {
    const owner = acquireOwner(project.run);
    expect([isOwned(project.run), readOwnerInfo(project.run)]).toEqual([true, owner.info]);
    expect(() => acquireOwner(project.run)).toThrow(RunOwnedError);
    owner.release();
    owner.release();
    expect([isOwned(project.run), readOwnerInfo(project.run), owner.held]).toEqual([false, null, false]);
    acquireOwner(project.run).release();
  });

  it("is kept by an owner that looks at its own lock", async () => {
    const owner = acquireOwner(project.run);
    expect(isOwned(project.run)).toBe(true);
    const script = join(import.meta.dirname, "ledger-holder.ts");
    const other = spawn(process.execPath, ["--import", "tsx", script, project.run], { stdio: ["ignore", "ignore", "pipe"] });
    let message = "";
    other.stderr.on("data", (chunk: Buffer) => {
      message += chunk.toString();
    });
    await once(other, "close");
    expect([other.exitCode, message]).toEqual([1, expect.stringContaining("RunOwnedError")]);
    owner.release();
  });

  it("says who has the run and what to do", async () => {
    const child = await otherOwner();
    expect(() => acquireOwner(project.run)).toThrow(
      new RegExp(`run first to have no owner; found that it is owned by process ${child.pid} on .* since 20.*trialist pause first`),
    );
    expect(isOwned(project.run)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "close");
  });

  it("is freed by the kernel when its process is killed", async () => {
    const child = await otherOwner();
    child.kill("SIGKILL");
    await once(child, "close");
    expect([isOwned(project.run), readOwnerInfo(project.run)]).toEqual([false, null]);
    const ledger = openSqliteLedger(project.run, { mode: "create", blobFolder: project.blobFolder });
    expect(ledger.append(0, 1, [made("a")])).toHaveLength(1);
    ledger.close();
  });

  it("is not inherited by child processes", async () => {
    const owner = acquireOwner(project.run);
    const child = spawn("sleep", ["30"], { stdio: "ignore" });
    owner.release();
    expect(() => acquireOwner(project.run).release()).not.toThrow();
    child.kill("SIGKILL");
    await once(child, "close");
  });

  it("gives every acquisition its epoch", () => {
    project.open("create").close();
    const owner = acquireOwner(project.run);
    const first = openSqliteLedger(project.run, { mode: "own", blobFolder: project.blobFolder, owner });
    first.append(0, 1, [made("a")]);
    rmSync(join(project.run, "lock"));
    const later = project.open("own");
    expect(() => first.append(1, 1, [made("b")])).toThrow(StaleOwnerError);
    expect(() => first.append(1, 1, [made("b")])).toThrow(/epoch 2; found an owner of epoch 3/);
    expect(later.head).toBe(1);
    first.close();
    later.close();
  });

  it("is demanded by a ledger for every write", () => {
    const owner = acquireOwner(project.run);
    const ledger = openSqliteLedger(project.run, { mode: "create", blobFolder: project.blobFolder, owner });
    expect(() => project.open("own")).toThrow(RunOwnedError);
    owner.release();
    expect(() => ledger.append(0, 1, [made("a")])).toThrow(LedgerNotWritableError);
    ledger.close();
    expect(() => openSqliteLedger(project.run, { mode: "own", blobFolder: project.blobFolder, owner })).toThrow(/released/);
  });

  it("survives a record of the owner that makes no sense", () => {
    const owner = acquireOwner(project.run);
    writeFileSync(join(project.run, "owner.json"), "{");
    expect(() => acquireOwner(project.run)).toThrow(/owned by another process/);
    owner.release();
  });
});

describe("the owner's socket", () => {
  it("answers commands, and failures by name", async () => {
    const owner = acquireOwner(project.run);
    const server = await serveOwner(project.run, async (command) => {
      if (command === "fail") throw new RangeError("too far");
      return { got: command };
    });
    expect(await askOwner(project.run, { kind: "pause", why: "ü" })).toEqual({ result: { got: { kind: "pause", why: "ü" } } });
    const refused = await askOwner(project.run, "fail").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OwnerCommandError);
    expect(refused).toMatchObject({ remoteName: "RangeError", message: "too far" });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => askOwner(project.run, index)));
    expect(answers).toEqual(Array.from({ length: 20 }, (_, index) => ({ result: { got: index } })));
    expect(statSync(server.path).mode & 0o777).toBe(0o600);
    await server.close();
    expect(existsSync(server.path)).toBe(false);
    owner.release();
    expect(await askOwner(project.run, "late")).toBeNull();
  });

  it("is null for a run without an owner, even where a dead one's socket lies, which the next replaces", async () => {
    expect(await askOwner(project.run, "a")).toBeNull();
    mkdirSync(project.run, { recursive: true });
    const script = `require("net").createServer().listen(${JSON.stringify(join(project.run, "owner.sock"))}, () => process.kill(process.pid, "SIGKILL"))`;
    await once(spawn(process.execPath, ["-e", script]), "close");
    expect(existsSync(join(project.run, "owner.sock"))).toBe(true);
    expect(await askOwner(project.run, "a")).toBeNull();
    const server = await serveOwner(project.run, () => "alive");
    expect(await askOwner(project.run, "a")).toEqual({ result: "alive" });
    await server.close();
  });

  it("says when an owner is there and silent", async () => {
    const owner = acquireOwner(project.run);
    const unreachable = await askOwner(project.run, "a").catch((error: unknown) => error);
    expect(unreachable).toMatchObject({ name: "OwnerSilentError", sent: false });
    expect((unreachable as Error).message).toMatch(/was not sent/);
    const server = await serveOwner(project.run, () => new Promise(() => undefined));
    const late = await askOwner(project.run, "a", { timeoutMs: 100 }).catch((error: unknown) => error);
    expect(late).toBeInstanceOf(OwnerSilentError);
    expect((late as Error).message).toMatch(/none within 100 ms.*may or may not/);
    await server.close();
    owner.release();
  });

  it("refuses what is too large or no request, and lives on", async () => {
    const server = await serveOwner(project.run, () => "x".repeat(2_000_000));
    await expect(askOwner(project.run, "x".repeat(2_000_000))).rejects.toThrow(/at most/);
    await expect(askOwner(project.run, "a")).rejects.toThrow(/owner's answer/);
    expect(await raw(server.path, "no json\n")).toMatch(/"ok":false/);
    expect(await raw(server.path, '{"id":"1","command":1,"more":1}\n')).toMatch(/"ok":false/);
    expect(await raw(server.path, "y".repeat(1_200_000))).toMatch(/longer line/);
    await server.close();
  });

  it("moves to a private folder when its path is too long", async () => {
    const run = join(project.folder, "long".repeat(40), "run");
    const owner = acquireOwner(run);
    const server = await serveOwner(run, (command) => command);
    expect(server.path.startsWith(project.folder)).toBe(false);
    expect(await askOwner(run, 7)).toEqual({ result: 7 });
    await server.close();
    expect(existsSync(server.path)).toBe(false);
    owner.release();
  });

  it("does not follow a pointer into a folder that others can write", async () => {
    mkdirSync(project.run, { recursive: true });
    const open = join(project.folder, "open");
    mkdirSync(open, { mode: 0o755 });
    const foreign = createServer((socket) => socket.end('{"id":"1","ok":true,"result":"foreign"}\n')).listen(join(open, "owner.sock"));
    await once(foreign, "listening");
    writeFileSync(join(project.run, "owner.sock.path"), join(open, "owner.sock"));
    expect(await askOwner(project.run, "a")).toBeNull();
    symlinkSync(open, join(project.folder, "link"));
    writeFileSync(join(project.run, "owner.sock.path"), join(project.folder, "link", "owner.sock"));
    expect(await askOwner(project.run, "a")).toBeNull();
    foreign.close();
  });
});

async function raw(path: string, text: string): Promise<string> {
  const socket = connect(path);
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString();
    if (answer.includes("\n")) socket.destroy();
  });
  socket.on("error", () => undefined);
  socket.write(text);
  await new Promise((done) => socket.once("close", done));
  return answer;
}
