import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { giveToSandbox } from "../../src/adapters/sandbox/identity.js";
import type { CapturedStreams, Executor, StageExecution } from "../../src/core/ports/executor.js";
import type { StageLimits, StageOutcome } from "../../src/core/protocol/outcome.js";

/** What the contract needs to know about the executor that it is held against. */
export interface ExecutorUnderTest {
  readonly sandbox: StageExecution["sandbox"];
  /** The kernel refuses processes above the limit; otherwise the tree is killed when too many are seen. */
  readonly refusesProcesses: boolean;
  /** Opens an executor that keeps its records in `root`. */
  open(root: string): Executor;
}

const MiB = 2 ** 20;

export const amplyLimited: StageLimits = {
  wallMs: 60_000,
  cpuMs: 60_000,
  memoryBytes: 512 * MiB,
  cpus: 1,
  processes: 64,
  diskBytes: 64 * MiB,
  outputBytes: 8 * MiB,
};

/** Folders of one stage on the host, reachable for the sandbox's user. */
export interface Bench {
  readonly folder: string;
  readonly workspace: string;
  readonly output: string;
  readonly collected: string;
  readonly data: string;
}

export async function makeBench(): Promise<Bench> {
  const folder = await mkdtemp(join(tmpdir(), "trialist-test-"));
  await chmod(folder, 0o755);
  const bench = {
    folder,
    workspace: join(folder, "workspace"),
    output: join(folder, "output"),
    collected: join(folder, "collected"),
    data: join(folder, "data"),
  };
  for (const each of [bench.workspace, bench.output, bench.data]) await mkdir(each);
  await writeFile(join(bench.data, "public.csv"), "a,b\n1,2\n");
  await giveToSandbox(bench.workspace);
  await giveToSandbox(bench.output);
  return bench;
}

let counter = 0;

/** A stage with everything that a test does not care about filled in. */
export function stage(
  bench: Bench,
  sandbox: StageExecution["sandbox"],
  command: string,
  more: Partial<StageExecution> = {},
): StageExecution {
  counter += 1;
  const at = (path: string, inside: string): string => (sandbox === "none" ? path : inside);
  return {
    id: `m${String(counter).padStart(5, "0")}.1/train`,
    command,
    workingDirectory: at(bench.workspace, "/trialist/workspace"),
    environment: { TRIALIST_SEED: "7", OUTPUT: at(bench.output, "/trialist/output"), DATA: at(bench.data, "/trialist/data") },
    mounts: [
      { source: bench.workspace, target: at(bench.workspace, "/trialist/workspace"), mode: "read-write" },
      { source: bench.output, target: at(bench.output, "/trialist/output"), mode: "read-write" },
      { source: bench.data, target: at(bench.data, "/trialist/data"), mode: "read-only" },
    ],
    limits: amplyLimited,
    graceMs: 300,
    outputFolder: null,
    outputs: [],
    collectInto: null,
    collectMaxBytes: MiB,
    writableFolders: [bench.workspace, bench.output],
    sandbox,
    keepHeadBytes: 64 * 1024,
    keepTailBytes: 64 * 1024,
    ...more,
  };
}

export function text(stream: { head: Uint8Array; tail: Uint8Array }): string {
  return Buffer.concat([stream.head, stream.tail]).toString("utf8");
}

/** Processes that run and have this word in their command line, wherever they hang in the tree. */
export function processesSaying(word: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "latin1").includes(word);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Asks again until it holds; for what follows soon but not at once. */
export async function eventually(holds: () => boolean | Promise<boolean>, patienceMs = 20_000): Promise<boolean> {
  const begun = performance.now();
  while (performance.now() - begun < patienceMs) {
    if (await holds()) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

/** A Python program that forks `count` sleeping children at most, whatever happens to it. */
const boundedForks = (count: number): string => `
import os, sys, time
children = []
failed = 0
for index in range(${count}):
    try:
        pid = os.fork()
    except OSError:
        failed += 1
        continue
    if pid == 0:
        time.sleep(20)
        os._exit(0)
    children.append(pid)
time.sleep(1)
for pid in children:
    os.kill(pid, 9)
print("forked", len(children), "refused", failed)
`;

/** Behaviour that every executor owes to the engine. */
export function executorContract(name: string, subject: ExecutorUnderTest): void {
  const { sandbox } = subject;
  const isolated = sandbox === "bubblewrap";

  describe(name, () => {
    let root: string;
    let executor: Executor;
    let bench: Bench;

    beforeAll(async () => {
      root = await mkdtemp(join(tmpdir(), "trialist-root-"));
      executor = subject.open(root);
      bench = await makeBench();
    });

    afterAll(async () => {
      await executor.close();
      await rm(root, { recursive: true, force: true });
      await rm(bench.folder, { recursive: true, force: true });
    });

    async function outcomeOf(execution: StageExecution): Promise<StageOutcome> {
      await executor.start(execution);
      const found = await executor.wait(execution.id);
      if (found.state !== "ended") throw new Error(`expected an end, found ${found.state}: ${found.reason}`);
      return found.outcome;
    }

    async function run(command: string, more: Partial<StageExecution> = {}): Promise<{ outcome: StageOutcome; streams: CapturedStreams }> {
      const execution = stage(bench, sandbox, command, more);
      const outcome = await outcomeOf(execution);
      return { outcome, streams: await executor.output(execution.id) };
    }

    const limited = (limits: Partial<StageLimits>): Partial<StageExecution> => ({ limits: { ...amplyLimited, ...limits } });
    const python = (program: string): string => `/usr/bin/python3 -I -c '${program.replaceAll("'", `'"'"'`)}'`;

    describe("ordinary stages", () => {
      test("exit codes pass through", async () => {
        expect((await run("exit 0")).outcome).toMatchObject({ exitCode: 0, signal: null, limit: null });
        expect((await run("exit 42")).outcome).toMatchObject({ exitCode: 42, signal: null, limit: null });
        expect((await run("exit 255")).outcome).toMatchObject({ exitCode: 255, signal: null });
      });

      test("a signal is told by its name", async () => {
        expect((await run("kill -SEGV $$")).outcome).toMatchObject({ exitCode: null, signal: "SIGSEGV", limit: null });
        expect((await run("kill -9 $$")).outcome).toMatchObject({ exitCode: null, signal: "SIGKILL", limit: null });
      });

      test("a command that does not exist is the command's failure", async () => {
        expect((await run("no-such-program")).outcome).toMatchObject({ exitCode: 127, limit: null });
      });

      test("both streams are captured, in any script", async () => {
        const { outcome, streams } = await run(`echo out; echo err >&2; echo also > /dev/stderr; echo "quoted 'Á' \\$x"`);
        expect(text(streams.stdout)).toBe("out\nquoted 'Á' $x\n");
        expect(text(streams.stderr)).toBe("err\nalso\n");
        expect(outcome.stdout).toEqual({ bytes: 19, omittedBytes: 0 });
      });

      test("standard input is delivered, whole", async () => {
        const stdin = "line of text\n".repeat(30_000);
        const { streams, outcome } = await run("cat > copy; wc -c < copy; rm copy", { stdin });
        expect(text(streams.stdout).trim()).toBe(String(stdin.length));
        expect(outcome.exitCode).toBe(0);
      });

      test("standard input that nobody reads does no harm", async () => {
        expect((await run("exit 5", { stdin: "x".repeat(500_000) })).outcome.exitCode).toBe(5);
      });

      test("without standard input there is none", async () => {
        const { streams } = await run("cat | wc -c");
        expect(text(streams.stdout).trim()).toBe("0");
      });

      test("the environment is what was given and sane defaults, nothing of the host's", async () => {
        process.env["TRIALIST_TEST_SECRET"] = "do-not-leak";
        const { streams } = await run("env", { limits: { ...amplyLimited, cpus: 2.5 } });
        const printed = text(streams.stdout);
        expect(printed).not.toContain("do-not-leak");
        expect(printed).toContain("TRIALIST_SEED=7\n");
        expect(printed).toContain("OMP_NUM_THREADS=2\n");
        expect(printed).toContain("OMP_WAIT_POLICY=PASSIVE\n");
        expect(printed).toContain("PATH=/usr/bin:/bin\n");
      });

      test("it starts in its working directory, and what it writes there stays", async () => {
        await run("echo kept > kept.txt");
        expect(await readFile(join(bench.workspace, "kept.txt"), "utf8")).toBe("kept\n");
      });

      test("wall time, processor time and memory are measured from outside", async () => {
        const { outcome } = await run(
          python(
            "import time\nblock = bytearray(60_000_000)\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass\ntime.sleep(0.4)",
          ),
        );
        expect(outcome.exitCode).toBe(0);
        expect(outcome.wallMs).toBeGreaterThan(900);
        expect(outcome.cpuMs).toBeGreaterThan(400);
        expect(outcome.cpuMs).toBeLessThan(outcome.wallMs + 300);
        expect(outcome.peakMemoryBytes).toBeGreaterThan(60_000_000);
        expect(outcome.peakMemoryBytes).toBeLessThan(300_000_000);
      });

      test("what is recorded as guaranteed says whether there was a sandbox", async () => {
        const { guarantees } = (await run("true")).outcome;
        expect(guarantees).toMatchObject({ sandbox, networkOff: isolated, filesystemIsolated: isolated });
        if (isolated) expect(guarantees.unprivileged).toBe(true);
      });
    });

    describe("limits", () => {
      test("an endless loop ends at the wall", async () => {
        const { outcome } = await run("while :; do sleep 0.05; done", limited({ wallMs: 400 }));
        expect(outcome.limit).toBe("wall");
        expect(outcome.wallMs).toBeGreaterThanOrEqual(400);
      });

      test("who ignores SIGTERM is killed after the grace", async () => {
        const { outcome, streams } = await run(
          python("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(1, flush=True)\nwhile True: time.sleep(1)"),
          limited({ wallMs: 1500 }),
        );
        expect(outcome).toMatchObject({ limit: "wall", exitCode: null, signal: "SIGKILL" });
        expect(outcome.wallMs).toBeGreaterThanOrEqual(1800);
        expect(text(streams.stdout)).toBe("1\n");
      });

      test("who listens to SIGTERM can say goodbye within the grace", async () => {
        const program =
          "import signal, sys, time\ndef bye(*_):\n  print(2, flush=True)\n  sys.exit(3)\nsignal.signal(signal.SIGTERM, bye)\nprint(1, flush=True)\nwhile True: time.sleep(0.1)";
        const { outcome, streams } = await run(`exec ${python(program)}`, { ...limited({ wallMs: 2000 }), graceMs: 20_000 });
        expect(outcome).toMatchObject({ limit: "wall", exitCode: 3 });
        expect(text(streams.stdout)).toBe("1\n2\n");
      });

      test("processor time of the whole tree", async () => {
        const { outcome } = await run("(while :; do :; done) & (while :; do :; done) & wait", limited({ cpuMs: 500 }));
        expect(outcome.limit).toBe("cpu");
        expect(outcome.cpuMs).toBeGreaterThanOrEqual(400);
      });

      test("memory", async () => {
        const program = "import time\nblocks = []\nwhile True:\n  blocks.append(bytearray(4_000_000))\n  time.sleep(0.005)";
        const { outcome } = await run(python(program), limited({ memoryBytes: 96 * MiB }));
        expect(outcome.limit).toBe("memory");
        expect(outcome.exitCode).not.toBe(0);
      });

      test("more processes than allowed, and failing by it", async () => {
        const command = `${python(boundedForks(40))} | tee forks && ! grep -qv 'refused 0' forks`;
        const { outcome } = await run(command, limited({ processes: 12 }));
        expect(outcome.limit).toBe("processes");
      });

      test.runIf(subject.refusesProcesses)("a refused process that a program copes with is no failure", async () => {
        const { outcome, streams } = await run(python(boundedForks(40)), limited({ processes: 12 }));
        expect(outcome).toMatchObject({ limit: null, exitCode: 0 });
        expect(text(streams.stdout)).toMatch(/forked \d refused 3\d|forked 1\d refused (2|3)\d/);
      });

      test("printing more than allowed", async () => {
        const { outcome } = await run("yes trialist", limited({ outputBytes: MiB }));
        expect(outcome.limit).toBe("output");
        expect(outcome.stdout.bytes).toBeGreaterThan(MiB);
        expect(outcome.stdout.bytes).toBeLessThan(64 * MiB);
      });

      test("what is printed within the limit is counted exactly, its head and tail kept", async () => {
        const total = 300_000_000;
        const { outcome, streams } = await run(`echo first; head -c ${total} /dev/zero; echo last`, {
          ...limited({ outputBytes: 400_000_000 }),
          keepHeadBytes: 1000,
          keepTailBytes: 500,
        });
        expect(outcome).toMatchObject({ exitCode: 0, limit: null });
        expect(outcome.stdout).toEqual({ bytes: total + 11, omittedBytes: total + 11 - 1500 });
        expect(Buffer.from(streams.stdout.head.subarray(0, 6)).toString()).toBe("first\n");
        expect(Buffer.from(streams.stdout.tail.subarray(-5)).toString()).toBe("last\n");
        expect([streams.stdout.head.byteLength, streams.stdout.tail.byteLength]).toEqual([1000, 500]);
      });

      test("filling the disk", async () => {
        const { outcome } = await run("head -c 200000000 /dev/zero > big; rm -f big; sleep 30", limited({ diskBytes: 8 * MiB }));
        await rm(join(bench.workspace, "big"), { force: true });
        expect(outcome.limit).toBe("disk");
      });

      test("filling the disk through a file that no folder lists", async () => {
        const program =
          "import os, time\nfile = open('hidden', 'wb')\nos.unlink('hidden')\nfor _ in range(20):\n  file.write(bytes(2_000_000))\nfile.flush()\ntime.sleep(30)";
        const { outcome } = await run(python(program), limited({ diskBytes: 8 * MiB }));
        expect(outcome.limit).toBe("disk");
      });

      test("what was left on the disk counts even if it ended before anybody looked", async () => {
        const { outcome } = await run("head -c 3000000 /dev/zero > left", limited({ diskBytes: 2 * MiB }));
        await rm(join(bench.workspace, "left"), { force: true });
        expect(outcome.limit).toBe("disk");
      });

      test("words change nothing", async () => {
        for (const word of ["oom", "Killed", "timeout", "MemoryError", "No space left on device"]) {
          const { outcome } = await run(`echo "${word}"; echo "${word}" >&2; exit 1`);
          expect(outcome).toMatchObject({ exitCode: 1, signal: null, limit: null });
        }
      });

      test("nothing of the tree survives, not even what detached itself", async () => {
        const word = `detached-${process.pid}-${counter}`;
        const { outcome } = await run(
          `setsid -f sh -c 'sleep 300; : ${word}' >/dev/null 2>&1 </dev/null; setsid -f sh -c 'trap "" TERM HUP; sleep 300; : ${word}'; sleep 0.3`,
        );
        expect(outcome).toMatchObject({ exitCode: 0, limit: null });
        expect(await eventually(() => processesSaying(word).length === 0, 2000)).toBe(true);
      });
    });

    describe("declared outputs", () => {
      let place: Bench;
      beforeAll(async () => {
        place = await makeBench();
      });
      afterAll(async () => {
        await rm(place.folder, { recursive: true, force: true });
      });

      async function collected(command: string, outputs: string[], more: Partial<StageExecution> = {}) {
        await rm(place.output, { recursive: true, force: true });
        await rm(place.collected, { recursive: true, force: true });
        await mkdir(place.output);
        await giveToSandbox(place.output);
        const execution = stage(place, sandbox, `cd "$OUTPUT"; ${command}`, {
          outputFolder: place.output,
          outputs,
          collectInto: place.collected,
          ...more,
        });
        return (await outcomeOf(execution)).outputs;
      }

      test("files are copied, with their folders", async () => {
        const outputs = await collected("echo a > a.csv; mkdir -p deep/er; echo bb > deep/er/b.bin; echo c > deep/c.bin; echo no > other", [
          "a.csv",
          "deep/**",
        ]);
        expect(outputs).toEqual([
          { path: "a.csv", state: "present", bytes: 2 },
          { path: "deep/c.bin", state: "present", bytes: 2 },
          { path: "deep/er/b.bin", state: "present", bytes: 3 },
        ]);
        expect(await readFile(join(place.collected, "deep/er/b.bin"), "utf8")).toBe("bb\n");
        await expect(stat(join(place.collected, "other"))).rejects.toThrow();
      });

      test("a glob that matches nothing is missing", async () => {
        expect(await collected("true", ["submission.csv", "models/*.bin"])).toEqual([
          { path: "submission.csv", state: "missing", bytes: 0 },
          { path: "models/*.bin", state: "missing", bytes: 0 },
        ]);
      });

      test.each([
        ["a symbolic link", "ln -s /etc/passwd x", "a symbolic link"],
        ["a dangling link", "ln -s /nowhere x", "a symbolic link"],
        ["a hard link", "echo 1 > y; ln y x", "2 hard links"],
        ["a FIFO", "mkfifo x", "a FIFO"],
        ["a folder", "mkdir x; echo 1 > x/y", "a folder"],
      ])("%s in its place is not read", async (_, command, found) => {
        const [output] = await collected(command, ["x"]);
        expect(output).toMatchObject({ path: "x", state: "not_a_regular_file", found });
        expect(await readdir(place.collected)).toEqual([]);
      });

      test("a socket in its place is not read", async () => {
        const [output] = await collected(python('import socket\nsocket.socket(socket.AF_UNIX).bind("x")'), ["x"]);
        expect(output).toMatchObject({ state: "not_a_regular_file", found: "a socket" });
      });

      test.runIf(!isolated && process.getuid?.() === 0)("a device in its place is not read", async () => {
        const [output] = await collected("mknod x c 1 5", ["x"]);
        expect(output).toMatchObject({ state: "not_a_regular_file", found: "a device" });
      });

      test.runIf(isolated)("a device cannot even be made in a sandbox", async () => {
        expect(await collected("mknod x c 1 5", ["x"])).toEqual([{ path: "x", state: "missing", bytes: 0 }]);
      });

      test("a folder that is a link is not entered", async () => {
        const [output] = await collected("ln -s /etc d", ["d/passwd"]);
        expect(output).toMatchObject({ path: "d/passwd", state: "not_a_regular_file", found: "its folder d is a link" });
      });

      test("a sparse terabyte is told and not copied", async () => {
        const [output] = await collected("truncate -s 1T x", ["x"]);
        expect(output).toMatchObject({ state: "sparse", bytes: 2 ** 40 });
      });

      test("a large file is told and not copied", async () => {
        const [output] = await collected("head -c 2000000 /dev/zero > x", ["x"]);
        expect(output).toMatchObject({ state: "too_large", bytes: 2_000_000 });
      });

      test("many sparse files cannot fill our disk", async () => {
        const outputs = await collected("for n in 1 2 3 4 5 6; do truncate -s 900K f$n; done", ["f*"], {
          limits: { ...amplyLimited, diskBytes: 2 * MiB },
        });
        expect(outputs.map((each) => each.state)).toEqual(["present", "present", "too_large", "too_large", "too_large", "too_large"]);
      });

      test("a file that a failed stage left is collected too", async () => {
        const outputs = await collected("echo partial > x; exit 1", ["x"]);
        expect(outputs).toEqual([{ path: "x", state: "present", bytes: 8 }]);
      });

      test("another stage may read the copies and cannot write them", async () => {
        await collected("echo a > a.csv", ["a.csv"]);
        const inside = isolated ? "/trialist/artifacts" : place.collected;
        const { outcome, streams } = await run(`cat ${inside}/a.csv; echo b > ${inside}/a.csv`, {
          mounts: [
            { source: bench.workspace, target: isolated ? "/trialist/workspace" : bench.workspace, mode: "read-write" },
            { source: place.collected, target: inside, mode: "read-only" },
          ],
        });
        expect(text(streams.stdout)).toBe("a\n");
        if (isolated) expect(outcome.exitCode).not.toBe(0);
        if (isolated) expect(await readFile(join(place.collected, "a.csv"), "utf8")).toBe("a\n");
      });
    });

    describe.runIf(isolated)("a hostile stage", () => {
      test("cannot write what it may only read, nor the system", async () => {
        for (const path of ["$DATA/public.csv", "$DATA/new", "/usr/bin/env", "/etc/passwd", "/new", "/dev/new", "/trialist/new"]) {
          const { outcome } = await run(`echo x > ${path}`);
          expect(outcome, path).toMatchObject({ exitCode: 2, limit: null });
        }
      });

      test("may delete what it can, and harms nothing but its own", async () => {
        const victim = await makeBench();
        await run("rm -rf /trialist/* /usr/lib /tmp/* /* 2>/dev/null", { mounts: stage(victim, sandbox, "").mounts, writableFolders: [] });
        expect(await readFile(join(victim.data, "public.csv"), "utf8")).toBe("a,b\n1,2\n");
        await rm(victim.folder, { recursive: true, force: true });
      });

      test("sees no file of the host", async () => {
        const secret = join(bench.folder, "labels.csv");
        await writeFile(secret, "secret");
        await chmod(secret, 0o644);
        for (const path of [secret, "/root", "/home", "/etc/shadow", "/var", "/sys", "/proc/1/root/etc/shadow", root]) {
          const { outcome, streams } = await run(`cat ${path}; ls ${path}`);
          expect(outcome.exitCode, path).not.toBe(0);
          expect(text(streams.stdout)).toBe("");
        }
      });

      test("a link out of its folders leads nowhere", async () => {
        await symlink(join(bench.folder, "labels.csv"), join(bench.workspace, "way-out"));
        const { outcome } = await run("cat way-out");
        await rm(join(bench.workspace, "way-out"));
        expect(outcome.exitCode).toBe(1);
      });

      test("cannot make a hard link to what it may only read", async () => {
        const { outcome } = await run("ln $DATA/public.csv $OUTPUT/stolen");
        expect(outcome.exitCode).not.toBe(0);
      });

      test("sees no process of the host and not its environment", async () => {
        const { streams } = await run("cat /proc/[0-9]*/environ | tr '\\0' '\\n'; ls /proc | grep -c '^[0-9]'");
        const printed = text(streams.stdout);
        expect(printed).not.toContain("do-not-leak");
        expect(Number(printed.trim().split("\n").at(-1))).toBeLessThan(10);
      });

      test("cannot open a socket to anything outside", async () => {
        const server = createServer((socket) => socket.end("reached"));
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
        const hidden = createServer((socket) => socket.end("reached"));
        await new Promise<void>((resolve) => hidden.listen(`\0trialist-test-${process.pid}`, () => resolve()));
        const address = server.address();
        const port = typeof address === "object" && address !== null ? address.port : 0;
        const { streams } = await run(
          python(`
import socket
def attempt(family, target):
    try:
        connection = socket.socket(family)
        connection.settimeout(2)
        connection.connect(target)
        print("reached")
    except OSError as error:
        print(type(error).__name__)
attempt(socket.AF_INET, ("127.0.0.1", ${port}))
attempt(socket.AF_INET, ("1.1.1.1", 53))
attempt(socket.AF_UNIX, "\\0trialist-test-${process.pid}")
`),
        );
        server.close();
        hidden.close();
        expect(text(streams.stdout)).not.toContain("reached");
        expect(text(streams.stdout).trim().split("\n")).toHaveLength(3);
      });

      test("gains no rights and no namespaces of its own", async () => {
        const { streams } = await run("id -u; grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; unshare -U true; unshare -m true; echo $?");
        expect(text(streams.stdout)).toBe("1000\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n1\n");
      });

      test("inherits no descriptor of ours", async () => {
        const { streams } = await run("ls /proc/self/fd | tr '\\n' ' '");
        expect(text(streams.stdout).trim()).toBe("0 1 2 3");
      });

      test("fills its temporary folder and no more", async () => {
        for (const path of ["/tmp/x", "/dev/shm/x"]) {
          const { outcome } = await run(
            `sleep 0.2; head -c 50000000 /dev/zero > ${path} || exit 1; sleep 20`,
            limited({ diskBytes: 8 * MiB }),
          );
          expect(outcome, path).toMatchObject({ limit: "disk" });
        }
      });

      test("a sandbox that cannot be set up is not the stage's failure", async () => {
        const execution = stage(bench, sandbox, "echo never");
        const nested = { source: bench.output, target: "/trialist/data/nested", mode: "read-only" as const };
        await executor.start({ ...execution, mounts: [...execution.mounts, nested] });
        expect(await executor.wait(execution.id)).toMatchObject({
          state: "gone",
          reason: expect.stringContaining("sandbox could not be set up"),
        });
      });
    });

    describe("what is asked of it", () => {
      test("an id can be started once", async () => {
        const execution = stage(bench, sandbox, "echo once");
        const both = await Promise.allSettled([executor.start(execution), executor.start(execution)]);
        expect(both.map((each) => each.status).sort()).toEqual(["fulfilled", "rejected"]);
        expect((await executor.wait(execution.id)).state).toBe("ended");
        await expect(executor.start(execution)).rejects.toMatchObject({ name: "ExecutionExistsError", kind: "refused" });
        expect(text((await executor.output(execution.id)).stdout)).toBe("once\n");
      });

      test("what was never started is unknown, and a wait for it ends", async () => {
        expect(await executor.find("m99999.1/train")).toEqual({ state: "unknown" });
        expect((await executor.wait("m99999.1/train")).state).toBe("gone");
        await expect(executor.stop("m99999.1/train")).resolves.toBeUndefined();
      });

      test("an execution is found while it runs and after its end, with the same outcome each time", async () => {
        const execution = stage(bench, sandbox, "echo early; while [ ! -e go ]; do sleep 0.02; done; rm go; echo late");
        await executor.start(execution);
        expect(await executor.find(execution.id)).toEqual({ state: "running" });
        expect(await eventually(async () => text((await executor.output(execution.id)).stdout) === "early\n")).toBe(true);
        await writeFile(join(bench.workspace, "go"), "");
        const waited = await executor.wait(execution.id);
        expect(await executor.find(execution.id)).toEqual(waited);
        expect(await executor.wait(execution.id)).toEqual(waited);
        expect(text((await executor.output(execution.id)).stdout)).toBe("early\nlate\n");
      });

      test("stopping ends the tree, and no limit is to blame", async () => {
        const word = `stopped-${process.pid}-${counter}`;
        const execution = stage(bench, sandbox, `setsid -f sh -c 'sleep 300; : ${word}'; sleep 300; : ${word}`);
        await executor.start(execution);
        const waiting = executor.wait(execution.id);
        expect(await eventually(() => processesSaying(word).length > 0)).toBe(true);
        await executor.stop(execution.id);
        expect(await waiting).toMatchObject({ state: "ended", outcome: { limit: null, signal: "SIGKILL", exitCode: null } });
        expect(processesSaying(word)).toEqual([]);
        await expect(executor.stop(execution.id)).resolves.toBeUndefined();
      });

      test("several run at once", async () => {
        const executions = Array.from({ length: 6 }, (_, index) => stage(bench, sandbox, `sleep 0.2; echo ${index}; exit ${index}`));
        const outcomes = await Promise.all(executions.map(outcomeOf));
        expect(outcomes.map((each) => each.exitCode)).toEqual([0, 1, 2, 3, 4, 5]);
      });

      test("forgetting makes ended ones unknown, and only those asked for", async () => {
        const [one, two] = [stage(bench, sandbox, "true"), stage(bench, sandbox, "true")];
        await outcomeOf(one);
        await outcomeOf(two);
        await executor.forget(`${one.id.split("/")[0]}/`);
        expect((await executor.find(one.id)).state).toBe("unknown");
        expect((await executor.find(two.id)).state).toBe("ended");
      });

      test("a mount that is not there is refused with its name, and the id stays free", async () => {
        const execution = stage(bench, sandbox, "true");
        const path = join(bench.folder, "nowhere");
        const wrong = { ...execution, mounts: [...execution.mounts, { source: path, target: path, mode: "read-only" as const }] };
        await expect(executor.start(wrong)).rejects.toMatchObject({ kind: "infrastructure", facts: { where: path, found: "ENOENT" } });
        expect((await executor.find(execution.id)).state).toBe("unknown");
        expect((await outcomeOf(execution)).exitCode).toBe(0);
      });

      test.runIf(isolated && process.getuid?.() === 0)(
        "a mount that the sandbox's user cannot get to is refused with the closed folder",
        async () => {
          const closed = join(bench.folder, "closed");
          await mkdir(join(closed, "data"), { recursive: true });
          await chmod(closed, 0o700);
          const execution = stage(bench, sandbox, "true");
          const wrong = {
            ...execution,
            mounts: [...execution.mounts, { source: join(closed, "data"), target: "/x", mode: "read-only" as const }],
          };
          await expect(executor.start(wrong)).rejects.toMatchObject({
            name: "UnreachableMountError",
            message: expect.stringContaining(closed),
          });
        },
      );

      test("what no machine could run is refused before anything happens", async () => {
        const execution = stage(bench, sandbox, "true");
        for (const wrong of [
          { ...execution, id: "../escape" },
          { ...execution, command: "a\0b" },
          { ...execution, workingDirectory: "relative" },
          { ...execution, outputs: ["../x"], outputFolder: bench.output, collectInto: bench.collected },
          { ...execution, outputs: ["x"] },
          { ...execution, environment: { "A B": "1" } },
        ]) {
          await expect(executor.start(wrong)).rejects.toMatchObject({ name: "InvalidExecutionError", kind: "usage" });
        }
      });
    });
  });
}
