/**
 * How often the promotion rule errs on the environments that come with trialist: copies of the baseline under the rule in
 * force, candidates drawn from real differences where copies cannot differ, and planted gains.
 *
 *   npm run study:gate -- [--aa 20] [--seed 1] [--environments flchain,digits-speed] [--write]
 *
 * Wall-clock metrics want a machine that does nothing else; the load is printed with the figures.
 */
import { writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { planGate } from "../src/app/calibrate-gate.js";
import { concludeGate } from "../src/app/conclude-gate.js";
import { openHost } from "../src/app/environments.js";
import { ownRun } from "../src/app/own-run.js";
import { Project } from "../src/app/project.js";
import type { Gate } from "../src/core/protocol/gate.js";
import { significant } from "../src/research/report/numbers.js";
import { intervalText, shareText, sourceWords } from "../src/research/report/rule-errors-text.js";

const { values: options } = parseArgs({
  options: {
    aa: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    environments: { type: "string", default: "flchain,digits-speed" },
    folder: { type: "string", default: "." },
    write: { type: "boolean", default: false },
  },
});
const [copies, seed] = [Number(options.aa), Number(options.seed)];
const project = new Project(options.folder);
const host = await openHost();
const say = (line: string): void => void process.stderr.write(`${line}\n`);

interface Row {
  readonly name: string;
  readonly gate: Gate;
  readonly rule: string;
  /** One-minute load when it began and when it ended; null for a run that was over already. */
  readonly load: readonly [number, number] | null;
}

async function row(name: string): Promise<Row> {
  const environmentFolder = new URL(`../environments/${name}`, import.meta.url).pathname;
  const request = { environmentFolder, name: null, copies, promotion: {}, seed, parallel: 1, sandbox: "bubblewrap" as const };
  const planned = await planGate(project, host, request);
  const before = loadavg()[0] ?? Number.NaN;
  if (planned.phase === "new") await planned.create();
  if (planned.phase !== "finished") {
    const owned = await ownRun(project, host, planned.run, { frozen: true, progress: say });
    owned.runner.command({ type: "resume", reason: "a study goes on" });
    await owned.runner.work().finally(() => owned.close());
  }
  const { gate, configuration } = await concludeGate(project, host, planned, { planted: null, note: say });
  const { rule, confirmations, level } = configuration.promotion;
  const load = planned.phase === "finished" ? null : ([before, loadavg()[0] ?? Number.NaN] as const);
  return { name, gate, load, rule: `${rule}, ${confirmations} pairs, level ${level}` };
}

const rows: Row[] = [];
for (const name of options.environments.split(",")) rows.push(await row(name));
const text = document(rows);
process.stdout.write(text);
if (options.write) await writeFile(new URL("../docs/studies/gate.md", import.meta.url), text);

function document(all: readonly Row[]): string {
  return `# How often the promotion rule errs

Small-scale: ${copies} copies of each baseline under the environment's own rule, run seed ${seed}. A copy is no better, so that each keep is a
false one. Where copies are equal on equal seeds they can show nothing, and candidates without a gain are drawn from real differences
instead, 2,000 of them, through the same verdicts (*simulated*). Intervals are exact (Clopper–Pearson), 95 %; those of draws are of
the drawing, not of the choice of records or recipes. [What is drawn from what](../guides/read-a-report.md#how-often-the-rule-errs).

Command: \`npm run study:gate -- --aa ${copies} --seed ${seed} --write\` · ${cpus().length} × ${cpus()[0]?.model ?? "CPU"}

| environment | rule | copies kept | of their confirmations | kept under \`any\` | simulated, kept | simulated, of confirmations | drawn from |
|---|---|---|---|---|---|---|---|
${all.map(falseKeeps).join("\n")}

The level holds for each confirmation where seeds decide; where the same records decide at first sight and again, for each trial.

| environment | planted gain | found, 95 % interval | put into |
|---|---|---|---|
${all.flatMap(planted).join("\n")}

The middle gain is the smallest visible one, as calibration stated it. What looks worse at first sight is never confirmed, and lost.

${all.map(conditions).join("\n")}
`;
}

function falseKeeps({ name, rule, gate }: Row): string {
  const { copies: real, resampled } = gate;
  const simulated = resampled === null ? ["", "", ""] : [share(resampled.kept), share(resampled.confirmed), sourceWords[resampled.from]];
  const marked = `${share(real.kept)}${real.identical ? "; copies are equal" : ""}`;
  return `| ${[name, rule, marked, share(real.confirmed), String(real.keptUnderAny), ...simulated].join(" | ")} |`;
}

function planted({ name, gate }: Row): string[] {
  return gate.planted.map(({ gain, from, kept }) => `| ${[name, significant(gain, 3), share(kept), sourceWords[from]].join(" | ")} |`);
}

function share(of: Gate["copies"]["kept"]): string {
  return of.of === 0 ? "none" : `${shareText(of)}: ${significant((100 * of.hits) / of.of, 3)} % [${intervalText(of)}]`;
}

function conditions({ name, gate, load }: Row): string {
  const day = new Date(gate.measuredAt).toISOString().slice(0, 10);
  const said =
    load === null ? "read from a run that was over" : `load ${load[0].toFixed(1)} when it began, ${load[1].toFixed(1)} when it ended`;
  return `- ${name}: ${day}, ${said}`;
}
