import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { Cache } from "../../src/adapters/environments/cache.js";
import { type RunSummary, runSummary } from "../../src/research/report/summary-schema.js";
import { commandLine, driven } from "./drive.js";
import { of } from "./events.js";
import { Lab, proposes, scriptedResearcher, type Words } from "./lab.js";
import type { Report } from "./run-driver.js";

const folder = join(import.meta.dirname, "cheats");
export const text = (name: string): string => readFileSync(join(folder, name), "utf8");

/** A planted program: what all of them share, then the files named. */
export function program(...names: readonly string[]): string {
  return [text("common.py"), ...names.map((name) => text(`${name}.py`))].join("");
}

const runSeed = 3;

/** How the environment of a run differs from a guarded one. */
export interface Opening {
  readonly sandbox?: "bubblewrap" | "none";
  /** Replacements in `environment.yaml`, each of which must apply. */
  readonly contract?: readonly (readonly [from: string, to: string])[];
  /** Another researcher than the scripted one. */
  readonly researcher?: string;
  /** Of the tree; default: every call is a draft. */
  readonly organization?: Readonly<Record<string, number>>;
}

type Pack = Readonly<Record<string, string>>;

/** Forty ids; half of them are in the loop, half held out, and of each half every other label is the baseline's guess. */
const ids = Array.from({ length: 40 }, (_, index) => `q${String(index).padStart(2, "0")}`);
function labelled(from: number, to: number): string {
  const rows = ids.slice(from, to).map((id, index) => `${id},${index % 2}`);
  return ["id,label", ...rows, ""].join("\n");
}

/** Predict a label for every id. Everything that a candidate leaves in its output folder is collected. */
export const scorePack: Pack = {
  "environment.yaml": `schema: trialist/environment@1
name: labels
description: "predict a label for every id"
surface: { editable: [solution.py] }
baseline: baseline/
data: { public: data/public, inloop: data/inloop, heldout: data/heldout }
stages:
  - { name: train, run: python3 solution.py, outputs: [predictions.csv, "**"], limits: { wall: 60 s, memory: 512 MiB } }
  - { name: measure, trust: evaluator, run: python3 evaluate.py }
  - { name: final, trust: held-out, run: python3 evaluate.py, purpose: held-out }
metrics: [{ name: accuracy, direction: maximize }]
noise: { calibrate: 2, remeasure_every: 0 }
promotion: { rule: any }
`,
  "evaluate.py": text("score_evaluate.py"),
  "baseline/solution.py": program("score_baseline"),
  "data/public/ids.txt": `${ids.join("\n")}\n`,
  "data/inloop/labels.csv": labelled(0, 20),
  "data/heldout/labels.csv": labelled(20, 40),
};

/** Do a piece of work as fast as you can, in four cold processes. */
export const clockPack: Pack = {
  "environment.yaml": `schema: trialist/environment@1
name: clock
description: "do the work faster"
surface: { editable: [solution.py] }
baseline: baseline/
data: { public: data/public }
stages:
  - { name: train, run: python3 solution.py, repeats: 4, exclusive: true, outputs: [result.txt], limits: { wall: 60 s, memory: 512 MiB } }
  - { name: measure, trust: evaluator, run: python3 evaluate.py, purpose: in-loop }
metrics: [{ name: seconds, direction: minimize, from: { wall: train } }, { name: right, direction: maximize }]
noise: { calibrate: 2, remeasure_every: 0 }
promotion: { rule: any }
`,
  "evaluate.py": text("clock_evaluate.py"),
  "baseline/solution.py": program("clock_baseline"),
  "data/public/nothing.txt": "there is nothing to know\n",
};

/** An environment of the box, with other files in places. Its runtime and its data come from the cache of the machine. */
export function boxed(name: string, changes: Pack = {}): Pack {
  const pack = join(import.meta.dirname, "../../environments", name);
  const files = readdirSync(pack, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => relative(pack, join(entry.parentPath, entry.name))).filter((path) => !path.includes("__pycache__"));
  return { ...Object.fromEntries(paths.map((path) => [path, readFileSync(join(pack, path), "utf8")])), ...changes };
}

/** A lab that shares the machine's cache, where runtimes are that take long to build. */
export class SharingLab extends Lab {
  override get variables(): Record<string, string> {
    const uv = process.env["TRIALIST_UV"];
    return { ...super.variables, TRIALIST_CACHE: sharedCache, ...(uv === undefined ? {} : { TRIALIST_UV: uv }) };
  }
}

const sharedCache = (await Cache.open(process.env)).root;

/** A run over: what became of every trial, and who leads. */
export interface Studied {
  readonly lab: Lab;
  readonly report: Report;
  readonly leader: string;
  end(trial: string): { readonly status: string; readonly reason: string };
  /** What the first measurement of a trial found. */
  measured(trial: string): { readonly values: Readonly<Record<string, number>>; readonly selfReported: readonly string[] } | null;
  /** The held-out look at a trial, as the operator takes it. */
  heldout(trial: string): Promise<Readonly<Record<string, number>> | null>;
  /** What `trialist status` says of the run. */
  status(): Promise<RunSummary>;
}

/** Lets these programs be proposed one after the other, each as a change of the baseline. The lab is the caller's to remove. */
export async function studied(pack: Pack, programs: readonly string[], opening: Opening = {}, lab = new Lab()): Promise<Studied> {
  const words = programs.map((each) => proposes({ "solution.py": each }));
  return studiedBy(pack, words, programs.length, opening, lab);
}

/** The same with a researcher's words as they are. */
export async function studiedBy(pack: Pack, words: readonly Words[], trials: number, opening: Opening, lab: Lab): Promise<Studied> {
  lab.write({
    ...pack,
    "environment.yaml": opened(pack["environment.yaml"] ?? "", opening.contract ?? []),
    ...scriptedResearcher(runSeed, words),
  });
  const request = {
    seed: runSeed,
    sandbox: opening.sandbox ?? "bubblewrap",
    budget: { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    organization: { name: "tree", configuration: opening.organization ?? { drafts: 200 } },
    ...(opening.researcher === undefined ? {} : { researcher: opening.researcher }),
  };
  const [report] = await driven(lab, [
    { do: "create", name: "run", request },
    { do: "work", name: "run" },
    { do: "report", name: "run" },
  ]);
  if (report === undefined) throw new Error("no report");
  return understood(lab, report);
}

function opened(contract: string, replacements: NonNullable<Opening["contract"]>): string {
  return replacements.reduce((yaml, [from, to]) => {
    if (!yaml.includes(from)) throw new RangeError(`the contract does not hold ${from}`);
    return yaml.replace(from, to);
  }, contract);
}

function understood(lab: Lab, report: Report): Studied {
  const { events } = report;
  const first = (trial: string) => of(events, "measurement.requested").find(({ data }) => data.trial === trial)?.data.measurement;
  return {
    lab,
    report,
    leader: of(events, "leader.changed").at(-1)?.data.trial ?? "none",
    end: (trial) => {
      const ended = of(events, "trial.ended").find(({ data }) => data.trial === trial);
      if (ended === undefined) throw new Error(`${trial} never ended; the run: ${report.phase}, ${report.reason}`);
      return ended.data;
    },
    measured: (trial) => {
      const result = of(events, "attempt.ended").find(({ data }) => data.measurement === first(trial))?.data.result;
      return result?.kind === "measured" ? result.measured : null;
    },
    heldout: async (trial) =>
      (await asked<{ readonly heldout: Readonly<Record<string, number>> | null }>(lab, "heldout", "run", trial)).heldout,
    status: async () => runSummary.parse(await asked(lab, "status", "run")),
  };
}

async function asked<T>(lab: Lab, ...words: string[]): Promise<T> {
  const { code, stdout, stderr } = await commandLine(lab, ...words, "--json").ended;
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as T;
}
