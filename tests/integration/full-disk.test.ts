import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLocalExecutor } from "../../src/adapters/executors/local.js";
import { createRun } from "../../src/app/create-run.js";
import { type Host, openHost } from "../../src/app/environments.js";
import { inspectRun } from "../../src/app/inspect.js";
import { ownRun } from "../../src/app/own-run.js";
import { Project } from "../../src/app/project.js";
import { verifyRun } from "../../src/app/verify.js";
import { DiskFullError } from "../../src/core/ports/disk-full.js";
import { Lab } from "../support/lab.js";
import { makeBench, stage } from "./executor-contract.js";

const disks: string[] = [];

/**
 * A file system of a few megabytes, reachable for the sandbox's user. It lies outside of the lab: a lab ends the processes
 * that mention its folder, and every process on the machine mentions every mount.
 */
function smallDisk(size: string): string {
  const folder = mkdtempSync(join(tmpdir(), "trialist-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size},mode=755`, "tmpfs", folder], { stdio: "ignore" });
  disks.push(folder);
  return folder;
}

function removeDisks(): void {
  for (const folder of disks.splice(0)) {
    execFileSync("umount", ["-l", folder]);
    rmdirSync(folder);
  }
}

/** A small file system of its own needs the right to mount one. */
function canMount(): boolean {
  try {
    smallDisk("1m");
    removeDisks();
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!canMount())("a disk that is full", () => {
  let lab: Lab;
  beforeEach(() => {
    lab = new Lab();
  });
  afterEach(() => {
    removeDisks();
    lab.remove();
  });

  const contract = `schema: trialist/environment@1
name: large
surface: { editable: [main.sh, weights.bin], max_bytes: 4 MiB }
baseline: BASELINE
stages: [{ name: train, run: sh main.sh, limits: { wall: 1 min } }]
metrics: [{ name: score, direction: maximize, from: { stdout: "score (.*)", stage: train } }]
noise: { calibrate: 2, remeasure_every: 0 }
promotion: { rule: any }
`;

  function hostWith(cache: string): Promise<Host> {
    return openHost({ ...lab.variables, TRIALIST_CACHE: cache });
  }

  function create(project: Project, host: Host): Promise<string> {
    return createRun(project, host, {
      environmentFolder: lab.pack,
      name: "r",
      organization: { name: "tree", configuration: {} },
      researcher: "command:sh propose.sh",
      budget: { trials: 1, costUsd: null, tokens: null, computeMs: null, wallMs: null },
      promotion: {},
      seed: 1,
      parallel: 1,
      sandbox: "bubblewrap",
    });
  }

  const proposes = `cat > /dev/null; printf '{"plan":{"hypothesis":"h"},"files":{"main.sh":"echo score 9\\\\n"}}'\n`;

  test("while an environment is frozen: it is said, nothing half frozen is left, and with room it goes", async () => {
    const cache = smallDisk("2m");
    const [project, host] = [new Project(lab.project), await hostWith(cache)];
    lab.write({
      "environment.yaml": contract.replace("BASELINE", "."),
      "main.sh": "echo score 1\n",
      "weights.bin": "w",
      "propose.sh": proposes,
    });
    writeFileSync(join(lab.pack, "context.bin"), Buffer.alloc(5 * 2 ** 20, 1));
    const failed = create(project, host);
    await expect(failed).rejects.toThrow(DiskFullError);
    await expect(failed).rejects.toThrow(/found a full disk.*Make room/);
    expect(readdirSync(join(cache, "environments"))).toEqual([]);
    execFileSync("mount", ["-o", "remount,size=20m", cache]);
    expect(await create(project, host)).toBe("r");
  });

  test("while a workspace is laid out: the run suspends, and goes on when there is room", async () => {
    const cache = smallDisk("16m");
    const [project, host] = [new Project(lab.project), await hostWith(cache)];
    lab.write({
      "environment.yaml": contract.replace("BASELINE", "baseline"),
      "baseline/main.sh": "echo score 1\n",
      "propose.sh": proposes,
    });
    mkdirSync(join(lab.pack, "baseline"), { recursive: true });
    writeFileSync(join(lab.pack, "baseline/weights.bin"), Buffer.alloc(3 * 2 ** 20, 1));
    await create(project, host);
    const owned = await ownRun(project, host, "r", { frozen: false, progress: () => undefined });
    const { bavail, bsize } = statfsSync(cache);
    const filler = join(cache, "filler");
    writeFileSync(filler, Buffer.alloc(bavail * bsize - 2 ** 20));
    await owned.runner.work();
    await owned.close();
    expect([owned.run.state.phase, owned.run.state.reason]).toEqual(["suspended", expect.stringContaining("a full disk")]);
    expect(owned.run.state.todo).toMatch(/Make room.*then resume/);
    expect(owned.run.state.trials["t0"]?.results).toEqual([]);
    // What was begun does not take the room that is missing.
    expect(statfsSync(cache).bavail * bsize).toBeGreaterThan(2 ** 19);
    rmSync(filler);
    const again = await ownRun(project, host, "r", { frozen: false, progress: () => undefined });
    again.run.dispatch({ type: "resume", reason: "there is room" });
    await again.runner.work();
    await again.close();
    expect([again.run.state.phase, again.run.state.leader?.trial]).toEqual(["finished", "t1"]);
    expect((await verifyRun(project, "r")).ok).toBe(true);
  });

  test("while the end of a stage is written: it is said, and the attempt is not lost in silence", async () => {
    const root = join(smallDisk("8m"), "executor");
    const bench = await makeBench();
    const executor = createLocalExecutor({ root, idleMs: 300 });
    await executor.start(stage(bench, "bubblewrap", "sleep 30", { id: "m1/run" }));
    const { supervisor } = JSON.parse(readFileSync(join(root, "executions", "m1+run", "handle.json"), "utf8"));
    spawnSync("sh", ["-c", "cat /dev/zero > hoard"], { cwd: root });
    // As a supervisor ends that has waited for room in vain.
    process.kill(supervisor.pid, "SIGKILL");
    await expect(executor.wait("m1/run")).rejects.toThrow(/room for the end of a stage; found a full disk/);
    rmSync(join(root, "hoard"));
    expect(await executor.wait("m1/run")).toMatchObject({ state: "gone" });
    await executor.close();
    rmSync(bench.folder, { recursive: true, force: true });
  });

  test("while an output is kept as a blob: the run suspends, and its stages are not run again", async () => {
    const disk = smallDisk("4m");
    const [project, host] = [new Project(disk), await hostWith(lab.cache)];
    const main = "head -c 3000000 /dev/zero > $TRIALIST_OUTPUT/model; echo score 1; echo ran >> $TRIALIST_OUTPUT/model\n";
    const keeping = contract.replace("BASELINE", "baseline").replace("run: sh main.sh,", "run: sh main.sh, outputs: [model],");
    lab.write({ "environment.yaml": `${keeping}keep_outputs: all\n`, "baseline/main.sh": main, "propose.sh": proposes });
    await create(project, host);
    const owned = await ownRun(project, host, "r", { frozen: false, progress: () => undefined });
    const { bavail, bsize } = statfsSync(disk);
    const filler = join(disk, "filler");
    writeFileSync(filler, Buffer.alloc(bavail * bsize - 2 ** 20));
    await owned.runner.work();
    await owned.close();
    expect([owned.run.state.phase, owned.run.state.reason]).toEqual(["suspended", expect.stringContaining("a full disk")]);
    expect(readdirSync(join(project.blobFolder, "tmp"))).toEqual([]);
    rmSync(filler);
    const again = await ownRun(project, host, "r", { frozen: false, progress: () => undefined });
    again.run.dispatch({ type: "resume", reason: "there is room" });
    await again.runner.work();
    await again.close();
    // The proposed candidate declares no output, and ends so.
    expect([again.run.state.phase, again.run.state.trials["t1"]?.status]).toEqual(["finished", "no_result"]);
    const run = inspectRun(project, "r");
    const started = [...run.ledger.read()].filter(
      (event) => event.type === "stage.started" && (event.data as { measurement: string }).measurement === "m1",
    );
    run.close();
    expect(started).toHaveLength(1);
    expect((await verifyRun(project, "r")).ok).toBe(true);
  });
});
