import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLocalExecutor } from "../../src/adapters/executors/local.js";
import { planGate } from "../../src/app/calibrate-gate.js";
import { openHost } from "../../src/app/environments.js";
import { runKey } from "../../src/app/executors.js";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import type { StoredRunEvent } from "../../src/core/protocol/events.js";
import { commandLine, commandLineWith, drive, driven } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack, proposes } from "../support/lab.js";
import type { Report, Step } from "../support/run-driver.js";
import { makeBench, stage, text } from "./executor-contract.js";

/**
 * GPUs as slots, with files that stand in for devices: what a stage sees and who has what is tested, not that a driver
 * works. Each stand-in holds its number, so that a candidate can say which it got.
 */
const seed = 6;
let lab: Lab;
let deviceRoot: string;
beforeEach(() => {
  lab = new Lab();
  deviceRoot = join(lab.folder, "machine");
  for (const name of ["nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1"]) device(name, "shared");
  for (const number of [0, 1]) device(`nvidia${number}`, String(number));
});
afterEach(() => lab.remove());

function device(name: string, content: string): void {
  const path = join(deviceRoot, "dev", name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, 0o666);
}

/** Prints which GPUs it sees, waits until it may end, and scores. */
function sees(score: number, until = "sleep 1"): Record<string, string> {
  const look = 'echo "gpus:$(cd /dev; ls -d nvidia[0-9]* 2>/dev/null | xargs -r cat) visible:$CUDA_VISIBLE_DEVICES"';
  return { "main.sh": `${look}\n${until}\necho ${score} > $TRIALIST_OUTPUT/out.txt\n` };
}

function pack(words: readonly string[], gpus = 1): void {
  const files = numberPack({ seed, words, rule: "any", gate: lab.gate, wall: "10 min" });
  const contract = (files["environment.yaml"] ?? "").replace("wall: 10 min", `wall: 10 min, cpus: 0.1, gpus: ${gpus}`);
  lab.write({ ...files, "environment.yaml": contract, "baseline/main.sh": sees(100, "true")["main.sh"] ?? "" });
}

function begin(trials: number, parallel: number): Step[] {
  const budget = { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null };
  const request = { seed, budget, parallel, organization: { name: "tree", configuration: { drafts: 50 } } };
  return [{ do: "create", name: "run", request }, go];
}
const go: Step = { do: "work", name: "run" };
const tell: Step = { do: "report", name: "run" };

async function reported(steps: readonly Step[], variables: Readonly<Record<string, string>> = {}): Promise<Report> {
  const report = (await driven(lab, [...steps, tell], { deviceRoot, variables: { ...lab.variables, ...variables } })).at(-1);
  if (report === undefined) throw new Error("no report");
  expect(report).toMatchObject({ phase: "finished", verified: { ok: true } });
  return report;
}

/** By trial, what its candidate said, and when its stage ran. */
function said(events: readonly StoredRunEvent[]) {
  const trials = new Map(of(events, "measurement.requested").map(({ data }) => [data.measurement, data.subject]));
  const begun = new Map(of(events, "stage.started").map(({ data, at }) => [`${data.measurement}/${data.stage}`, at]));
  const ends = of(events, "stage.ended").filter(({ data }) => data.stage === "train");
  const inspected = inspectRun(new Project(lab.project), "run");
  const all = ends.map(({ data, at }) => {
    const words = Buffer.from(inspected.ledger.blob(data.stdout.blob)).toString("utf8");
    const [, gpus = "?", visible = "?"] = /gpus:(\S*) visible:(\S*)/.exec(words) ?? [];
    return { trial: trials.get(data.measurement) ?? "", gpus, visible, from: begun.get(`${data.measurement}/train`) ?? 0, to: at };
  });
  inspected.close();
  return all;
}

describe("GPUs", () => {
  it("are each one stage's alone: two at once never share, a third waits", async () => {
    pack(Array.from({ length: 4 }, (_, index) => proposes(sees(200 + index))));
    const { events } = await reported(begin(4, 3));
    expect(of(events, "run.started")[0]?.data.configuration.host.gpus).toEqual(["/dev/nvidia0", "/dev/nvidia1"]);
    const stages = said(events).filter(({ trial }) => trial !== "t0");
    expect(stages).toHaveLength(4);
    for (const each of stages) expect(each).toMatchObject({ gpus: expect.stringMatching(/^[01]$/), visible: "0" });
    const pairs = stages.flatMap((one, place) => stages.slice(place + 1).map((other) => [one, other] as const));
    const together = pairs.filter(([one, other]) => one.from < other.to && other.from < one.to);
    // Who waits has a stage that is not started yet: three were never at work.
    expect(together.length).toBeGreaterThan(0);
    for (const [one, other] of together) expect(one.gpus).not.toBe(other.gpus);
  });

  it("of a list of known candidates are those that its host may use", async () => {
    pack([]);
    const host = { ...(await openHost({ ...lab.variables, TRIALIST_GPUS: "1" })), deviceRoot };
    const wanted = {
      environmentFolder: lab.pack,
      name: "copies",
      copies: 1,
      promotion: {},
      seed,
      parallel: 1,
      sandbox: "bubblewrap",
    } as const;
    const project = new Project(lab.project);
    await (await planGate(project, host, wanted)).create();
    const { state, close } = inspectRun(project, "copies");
    close();
    expect(state.configuration?.host.gpus).toEqual(["/dev/nvidia1"]);
  });

  it("that a stage of a dead owner still uses stay its own", async () => {
    pack([proposes(sees(300, "until [ -e /gate/end ]; do sleep 0.1; done")), `sleep 4; ${proposes(sees(200, "true"))}`]);
    // This owner may use the second one alone; the next one both.
    const first = drive(lab, begin(2, 2), { deviceRoot, variables: { ...lab.variables, TRIALIST_GPUS: "1" } });
    const executions = join(lab.cache, "executors", runKey(new Project(lab.project).runFolder("run")));
    const executor = createLocalExecutor({ root: executions });
    await expect.poll(() => executor.gpusInUse(), { timeout: 60_000 }).toEqual([{ id: "m3.1/train-1", gpus: [1] }]);
    first.child.kill("SIGKILL");
    await first.ended;
    const next = drive(lab, [go, tell], { deviceRoot });
    const m4 = join(executions, "executions", "m4.1+train-1", "gpus.json");
    await expect.poll(() => existsSync(m4) && readFileSync(m4, "utf8"), { timeout: 60_000 }).toBe("[0]");
    lab.open("end");
    const { reports } = await next.ended;
    await executor.close();
    expect(said(reports[0]?.events ?? []).map(({ trial, gpus }) => [trial, gpus])).toEqual(
      expect.arrayContaining([
        ["t1", "1"],
        ["t2", "0"],
      ]),
    );
    expect(of(reports[0]?.events ?? [], "attempt.ended").filter(({ data }) => data.result.kind === "interrupted")).toEqual([]);
  });

  it("are seen by nobody who takes none, and are in no digest then", async () => {
    pack([proposes(sees(200, "true"))], 0);
    const { events } = await reported(begin(1, 1));
    expect(new Set(said(events).map(({ gpus, visible }) => `${gpus}|${visible}`))).toEqual(new Set(["|"]));
    expect(JSON.stringify(of(events, "run.started"))).not.toContain('gpus":');
  });

  it("that are not there refuse the run before anything is made", async () => {
    pack([proposes(sees(200))], 3);
    const { code, stderr } = await drive(lab, begin(1, 1), { deviceRoot }).ended;
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/MissingGpusError.*3 GPUs, which stage train of number takes.*0: \/dev\/nvidia0; 1:/s),
    ]);
    for (const words of [
      ["run", lab.pack, "--researcher", "command:sh answer.sh"],
      ["check", lab.pack],
    ]) {
      const told = await commandLine(lab, ...words).ended;
      expect([told.code, told.stderr]).toEqual([3, expect.stringContaining("3 GPUs, which stage train of number takes")]);
    }
    expect(new Project(lab.project).runNames()).toEqual([]);
    pack([proposes(sees(200))], 1);
    for (const [allowed, words] of [
      ["", /none that may be used/],
      ["7", /numbers of GPUs.*0, 1.*"7"/s],
      ["one", /"one"/],
    ] as const) {
      const refused = await drive(lab, begin(1, 1), { deviceRoot, variables: { ...lab.variables, TRIALIST_GPUS: allowed } }).ended;
      expect([refused.code, refused.stderr]).toEqual([3, expect.stringMatching(words)]);
    }
    const doctor = await commandLineWith(lab, { TRIALIST_GPUS: "" }, "doctor", "--json").ended;
    expect(JSON.parse(doctor.stdout)).toMatchObject({
      checks: expect.arrayContaining([expect.objectContaining({ name: "gpus", required: false })]),
    });
  });
});

describe("a device", () => {
  it.runIf(process.getuid?.() === 0)("can be opened for reading and writing inside, and is all that is added", async () => {
    const bench = await makeBench();
    const node = join(bench.folder, "dev", "nvidia3");
    mkdirSync(dirname(node));
    execFileSync("mknod", ["-m", "666", node, "c", "1", "3"]);
    const executor = createLocalExecutor({ root: join(lab.folder, "executor") });
    try {
      const devices = [{ source: node, target: "/dev/nvidia3" }];
      const look = "echo x > /dev/nvidia3 && wc -c < /dev/nvidia3; ls -d /dev/nv*; mknod /dev/mine c 1 3 2>&1 | grep -c .";
      const execution = stage(bench, "bubblewrap", look, { devices, gpus: [3] });
      await executor.start(execution);
      expect(await executor.wait(execution.id)).toMatchObject({ outcome: { exitCode: 0 } });
      expect(text((await executor.output(execution.id)).stdout)).toBe("0\n/dev/nvidia3\n1\n");
      expect(await executor.gpusInUse()).toEqual([]);
      for (const target of ["/dev/sda", "/dev/nvidia3/../mem", "/dev/mem", "/etc/passwd"]) {
        const wrong = stage(bench, "bubblewrap", "true", { devices: [{ source: target, target }] });
        await expect(executor.start(wrong)).rejects.toMatchObject({ name: "InvalidExecutionError" });
      }
    } finally {
      await executor.close();
      await sleep(0);
      rmSync(bench.folder, { recursive: true });
    }
  });
});
