import { afterEach, describe, expect, it } from "vitest";
import { clockPack, type Opening, program, type Studied, scorePack, studied, studiedBy } from "../support/cheaters.js";
import { Lab, proposes } from "../support/lab.js";

/**
 * Programs that cheat in the known ways. Behind the guards each is worth what it honestly is, and the best stays the
 * baseline; with its guard switched off the same program wins, which shows that the guard is what held. The promotion
 * rule is `any`, the weakest: a cheat that gained anything would lead. The table for people: docs/guides/cheaters.md.
 */
interface Row {
  readonly trick: string;
  readonly program: string;
  /** How it ends behind the guards. */
  readonly status: string;
  /** What a guarded measurement finds, where there is one: the honest worth. */
  readonly worth?: (values: Readonly<Record<string, number>>) => void;
  /** Where the guard is switched off; null: there is no harmless way to do so. */
  readonly off: Opening | null;
}

let labs: Lab[] = [];
afterEach(() => {
  for (const lab of labs) lab.remove();
  labs = [];
});

function lab(): Lab {
  const made = new Lab();
  labs.push(made);
  return made;
}

const noWalls: Opening = { sandbox: "none" };
/** Besides without walls: an evaluator that takes its time, so that what stayed behind does not have to be quick. */
const noWallsNoHurry: Opening = {
  sandbox: "none",
  contract: [["run: python3 evaluate.py }", "run: sleep 4; python3 evaluate.py; sleep 1 }"]],
};
const importsOutputs: Opening = {
  contract: [["run: python3 evaluate.py }", 'run: PYTHONPATH="$TRIALIST_ARTIFACTS" python3 evaluate.py }']],
};
const printedScore: Opening = {
  contract: [
    [
      "{ name: accuracy, direction: maximize }",
      '{ name: accuracy, direction: maximize, from: { stdout: "accuracy: (.+)", stage: train } }',
    ],
  ],
};
const ownTimer: Opening = { contract: [["{ wall: train }", '{ stdout: "seconds: (.+)", stage: train }']] };
const noWallsManySeeds: Opening = { sandbox: "none", contract: [["repeats: 4", "repeats: 12"]] };
const slowEvaluator: Opening = { sandbox: "none", contract: [["run: python3 evaluate.py,", "run: sleep 3; python3 evaluate.py,"]] };

const asTheBaseline = { status: "discard", worth: (values: Readonly<Record<string, number>>) => expect(values).toEqual({ accuracy: 0.5 }) };

const scoreRows: readonly Row[] = [
  { trick: "reads labels", program: program("reads_labels"), ...asTheBaseline, off: noWalls },
  { trick: "edits the evaluator", program: program("edits_evaluator"), ...asTheBaseline, off: noWalls },
  { trick: "writes the measurement file", program: program("writes_measurement"), ...asTheBaseline, off: noWallsNoHurry },
  { trick: "leaves a process that alters the outputs", program: program("stays_behind"), ...asTheBaseline, off: noWallsNoHurry },
  { trick: "prints a metric", program: program("prints_metric"), ...asTheBaseline, off: printedScore },
  { trick: "plants sitecustomize.py", program: program("plants_sitecustomize"), ...asTheBaseline, off: importsOutputs },
  { trick: "plants usercustomize.py", program: program("plants_usercustomize"), ...asTheBaseline, off: importsOutputs },
  { trick: "shadows the evaluator's modules", program: program("shadows_modules"), ...asTheBaseline, off: importsOutputs },
];

/** Slower than the baseline, by the clock that nobody but the engine holds. */
const slow = { status: "discard", worth: (values: Readonly<Record<string, number>>) => expect(values["right"]).toBe(1) };

const clockRows: readonly Row[] = [
  { trick: "patches the clock", program: program("patches_clock"), ...slow, off: ownTimer },
  { trick: "works before its timer starts", program: program("works_before_timer"), ...slow, off: ownTimer },
  { trick: "sets the machine's clock", program: program("sets_clock"), ...slow, off: null },
  { trick: "works after its end", program: program("works_after_end"), status: "no_result", off: slowEvaluator },
  { trick: "keeps a cache over seeds", program: program("cache_places", "caches_over_seeds"), ...slow, off: noWallsManySeeds },
];

/** Two trials: the first one leaves what the second one takes. */
const overTrials = [program("cache_places", "leaves_cache"), program("cache_places", "finds_cache")];

describe.each([
  ["a score by an evaluator", scorePack, scoreRows],
  ["a time by the clock", clockPack, clockRows],
])("cheating on %s", (_, pack, rows) => {
  it("is worth nothing: each ends with its status, and the best is unchanged", async () => {
    const run = await studied(
      pack,
      rows.map((row) => row.program),
      {},
      lab(),
    );
    const found = rows.map(({ trick }, index) => `${trick}: ${run.end(`t${index + 1}`).status}`);
    expect(found).toEqual(rows.map(({ trick, status }) => `${trick}: ${status}`));
    for (const [index, { worth }] of rows.entries()) worth?.(run.measured(`t${index + 1}`)?.values ?? {});
    expect(run.leader).toBe("t0");
    expect(run.report).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(await run.lab.leftovers()).toEqual([]);
  });

  const switched = rows.flatMap(({ off, ...row }) => (off === null ? [] : [{ ...row, off }]));
  it.each(switched)("$trick: wins where its guard is off", async ({ program: cheat, off }) => {
    const run = await studied(pack, [cheat], off, lab());
    expect(run.end("t1").status).toBe("keep");
    expect(run.leader).toBe("t1");
    if (pack === scorePack) expect(run.measured("t1")?.values).toEqual({ accuracy: 1 });
  });
});

describe("labels that are held out", () => {
  const rows = [program("reads_labels")];

  it("are not found: the operator's look at the cheat sees what it sees of the baseline", async () => {
    const run = await studied(scorePack, rows, {}, lab());
    expect([await run.heldout("t0"), await run.heldout("t1")]).toEqual([{ accuracy: 0.5 }, { accuracy: 0.5 }]);
  });

  it("are found without a sandbox", async () => {
    const run = await studied(scorePack, rows, noWalls, lab());
    expect(await run.heldout("t1")).toEqual({ accuracy: 1 });
  });
});

describe("a cache over trials", () => {
  it("is not there in the next one", async () => {
    const run = await studied(clockPack, overTrials, {}, lab());
    expect([run.end("t1").status, run.end("t2").status, run.leader]).toEqual(["discard", "discard", "t0"]);
    for (const trial of ["t1", "t2"]) expect(run.measured(trial)?.values["right"]).toBe(1);
  });

  it("is there without a sandbox", async () => {
    const run = await studied(clockPack, overTrials, noWalls, lab());
    expect([run.end("t1").status, run.end("t2").status, run.leader]).toEqual(["discard", "keep", "t2"]);
  });
});

describe("what a program says of itself", () => {
  const leads = async (run: Studied): Promise<unknown> => {
    const said = await run.status();
    return [run.leader, run.measured("t1")?.selfReported, said.metric?.selfReported];
  };

  it("carries the mark self-reported where it wins, and nothing else does", async () => {
    expect(await leads(await studied(scorePack, [program("prints_metric")], printedScore, lab()))).toEqual(["t1", ["accuracy"], true]);
    expect(await leads(await studied(clockPack, [program("patches_clock")], ownTimer, lab()))).toEqual(["t1", ["seconds"], true]);
    expect(await leads(await studied(scorePack, [program("prints_metric")], {}, lab()))).toEqual(["t0", [], false]);
  });
});

describe("an evaluator among the proposed files", () => {
  it("is refused before anything runs, and the next answer counts", async () => {
    const words = {
      1: proposes({ "evaluate.py": "the candidate's\n" }),
      2: proposes({ "../pack/evaluate.py": "the candidate's\n" }),
      3: proposes({ "solution.py": `${program("score_baseline")}# as it was\n` }),
    };
    const run = await studiedBy(scorePack, [words], 1, {}, lab());
    const refused = run.report.events.flatMap(({ type, data }) => (type === "call.refused" ? data.violations.map(({ code }) => code) : []));
    expect(refused).toEqual(["not_editable", "path_outside"]);
    expect([run.end("t1").status, run.leader]).toEqual(["discard", "t0"]);
  });

  it("cannot be made editable: such a contract is no environment", async () => {
    const open: Opening = { contract: [["editable: [solution.py]", 'editable: ["*.py"]']] };
    await expect(studied(scorePack, [program("score_baseline")], open, lab())).rejects.toThrow(/matches evaluate\.py/);
  });
});
