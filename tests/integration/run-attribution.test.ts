import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { initialState, type RunState } from "../../src/core/harness/state.js";
import { LedgerSchemaError } from "../../src/core/ports/ledger-errors.js";
import { type Attribution, attribution } from "../../src/research/attribution/document.js";
import { commandLine, driven, type Ended } from "../support/drive.js";
import { Lab, numberPack, proposes } from "../support/lab.js";

/**
 * Three kept changes: t1 raises a, t2 raises b, and t3 raises a once more and c so far that b does not matter any more.
 * So t2 is neutral, though it was a gain in its time, and t1 and t3 stand on one line.
 */
const seed = 4;
const recipe = (a: number, b: number, c: number, score: string): Record<string, string> => ({
  "main.sh": [
    `a=${a}`,
    `b=${b}`,
    `c=${c}`,
    "most=$b",
    "if [ $c -gt $most ]; then most=$c; fi",
    `echo $((${score})) > $TRIALIST_OUTPUT/out.txt`,
    "",
  ].join("\n"),
});

/** Noise of its own for every candidate and seed: pairs do not cancel it. */
const noisy = `100 * (a + most) + $(printf '%s' "$TRIALIST_SEED" | cat - main.sh | cksum | cut -d' ' -f1) % 97`;
const exact = "a + most";

function story(score: string, rule: "any" | "confirmed"): Record<string, string> {
  const words = [
    [10, 0, 0, "raise a"],
    [10, 5, 0, "raise b"],
    [12, 5, 20, "raise a more, and | c <b>\u001b[31m"],
    [11, 5, 20, "lower a again"],
  ] as const;
  return {
    ...numberPack({ seed, rule, calibrate: 3, words: words.map(([a, b, c, why]) => proposes(recipe(a, b, c, score), why)) }),
    "baseline/main.sh": recipe(1, 0, 0, score)["main.sh"] ?? "",
  };
}

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

async function searched(score: string, rule: "any" | "confirmed"): Promise<void> {
  lab.write(story(score, rule));
  const request = { seed, organization: { name: "tree", configuration: { drafts: 1 } } };
  const [report] = await driven(lab, [
    { do: "create", name: "night", request },
    { do: "work", name: "night" },
    { do: "report", name: "night" },
  ]);
  const kept = report?.events.flatMap((event) => (event.type === "trial.ended" && event.data.status === "keep" ? [event.data.trial] : []));
  expect(kept).toEqual(["t0", "t1", "t2", "t3"]);
}

async function said(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await commandLine(lab, ...words).ended;
  expect(`${words.join(" ")}: ${code}\n${code === 0 ? "" : stderr}`).toBe(`${words.join(" ")}: 0\n`);
  return stdout;
}

async function attributed(...more: string[]): Promise<Attribution> {
  return attribution.parse(JSON.parse(await said("attribute", "night", "--yes", "--json", ...more)));
}

const classes = ({ changes }: Attribution): unknown => Object.fromEntries(changes.map((change) => [change.change, change.class]));

describe("attribution", () => {
  it("without noise: tells exactly what each change is worth, and finds the smallest recipe", async () => {
    await searched(exact, "any");
    // Where the environment lay has nothing to say any more.
    renameSync(lab.pack, `${lab.pack}-gone`);
    const answer = await attributed();
    renameSync(`${lab.pack}-gone`, lab.pack);
    expect(answer).toMatchObject({ run: "night", winner: "t3", state: "done", list: "night-attribution", margin: 0, pairs: 3 });
    expect(classes(answer)).toEqual({ t1: "entangled", t2: "neutral", t3: "real" });
    const [t1, t2, t3] = answer.changes;
    expect(t1).toMatchObject({ with: ["t3"], gain: null });
    expect(t2).toMatchObject({ gain: { value: 0, lower: 0, upper: 0 } });
    expect(t3).toMatchObject({ gain: { value: 17, lower: 17, upper: 17 }, adjustedP: 0 });
    expect(answer.groups).toMatchObject([{ changes: ["t1", "t3"], gain: { value: 26 } }]);
    expect(answer.smallest).toMatchObject({
      run: "night-attribution-smallest",
      state: "done",
      leavesOut: ["t2"],
      value: 32,
      overWinner: { value: 0, lower: 0 },
      overBaseline: { value: 31, lower: 31 },
      keepsTheGain: "yes",
      beatsTheBaseline: "yes",
    });

    // Called again there is nothing to measure, and the report has it.
    expect(await attributed()).toEqual(answer);
    expect(await said("verify", "--all")).toMatch(/night-attribution-smallest: .* check out/);
    expect(await said("replay", "night-attribution")).toContain("came out the same");
    const report = await said("report", "night");
    expect(report).toContain("## What t3 owes its gain to");
    expect(report).toContain("trialist apply night-attribution-smallest");
    expect(report).not.toContain("\u001b");
    const status = JSON.parse(await said("status", "night", "--json")) as { attribution: unknown };
    expect(status.attribution).toEqual(answer);

    // The smallest recipe goes where the baseline lies, and the winner could go there too.
    await said("apply", "night-attribution-smallest");
    expect(readFileSync(join(lab.pack, "baseline/main.sh"), "utf8")).toBe(recipe(12, 0, 20, exact)["main.sh"]);
  });

  it("with noise, killed in the middle: called again it gives what it would have given", async () => {
    await searched(noisy, "confirmed");
    const undisturbed = await attributed("--name", "calm");
    expect(classes(undisturbed)).toEqual({ t1: "entangled", t2: "neutral", t3: "real" });
    expect(undisturbed.margin).toBeGreaterThan(0);
    expect(undisturbed.smallest).toMatchObject({ leavesOut: ["t2"], keepsTheGain: "yes", beatsTheBaseline: "yes" });

    await killedAt("shaken", "shaken", ({ searchTrialsEnded }) => searchTrialsEnded >= 1);
    await killedAt("shaken", "shaken-smallest", ({ phase }) => phase === "calibrating");
    const shaken = await attributed("--name", "shaken");
    const renamed = JSON.parse(JSON.stringify(shaken).replaceAll("shaken", "calm")) as Attribution;
    expect(renamed).toEqual(undisturbed);
    expect(await lab.leftovers()).toEqual([]);
  });

  it("goes on after a death before the list run was recorded, and refuses what is something else", async () => {
    await searched(exact, "any");
    const asked = await refused("attribute", "night");
    expect(asked.stderr).toMatch(/measurements, and at most .* Measure\? .*--yes/);
    const first = await attributed();
    // As a death between making the ledger and recording the start leaves it.
    for (const name of ["night-attribution", "night-attribution-smallest"]) {
      const folder = new Project(lab.project).runFolder(name);
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
      writeFileSync(join(folder, "ledger.sqlite"), "");
    }
    expect(await attributed()).toEqual(first);

    expect((await refused("attribute", "night", "--yes", "--pairs", "5")).stderr).toContain("one of 3 pairs");
    expect((await refused("attribute", "night", "--yes", "--trial", "t0", "--name", "x")).stderr).toContain("nobody proposed");
    expect((await refused("attribute", "night", "--yes", "--name", "night")).stderr).toContain("a run of something else");
    expect((await refused("run", lab.pack, "--rule", "compare")).stderr).toContain("--rule expects");
  });

  it("by hunk: takes the whole difference apart", async () => {
    await searched(exact, "any");
    const answer = await attributed("--by", "hunk", "--name", "hunks");
    expect(answer.by).toBe("hunk");
    expect(answer.changes.map(({ words }) => words)).toEqual(["main.sh, changed"]);
    expect(classes(answer)).toEqual({ h1: "real" });
    expect(answer.smallest).toMatchObject({ state: "none" });
  });
});

async function refused(...words: string[]): Promise<Ended> {
  const ended = await commandLine(lab, ...words).ended;
  expect(ended.code).toBe(2);
  return ended;
}

type Wanted = (state: RunState) => boolean;

/** Kills the command when one of its list runs has come to a certain point. */
async function killedAt(name: string, list: string, isThere: Wanted): Promise<void> {
  const project = new Project(lab.project);
  const { child, ended } = commandLine(lab, "attribute", "night", "--yes", "--name", name);
  for (;;) {
    if (project.runNames().includes(list) && isThere(stateIn(project, list))) break;
    if (child.exitCode !== null) throw new Error(`it ended before it could be killed: ${(await ended).stderr}`);
    await sleep(20);
  }
  child.kill("SIGKILL");
  expect((await ended).signal).toBe("SIGKILL");
}

/** A ledger that is just being made has no state yet. */
function stateIn(project: Project, list: string): RunState {
  try {
    const { state, close } = inspectRun(project, list);
    close();
    return state;
  } catch (error) {
    if (error instanceof LedgerSchemaError) return initialState();
    throw error;
  }
}
