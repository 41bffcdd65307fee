import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { configurationOf, type RunState, trialNamed } from "../core/harness/state.js";
import { RefusedError, TrialistError } from "../core/protocol/errors.js";
import { attributionOf } from "../research/attribution/attribute.js";
import { type Attribution, attribution } from "../research/attribution/document.js";
import { type ListRun, recordedTask } from "../research/attribution/list.js";
import { type AttributionPlan, planAttribution, type Units } from "../research/attribution/plan.js";
import { printable } from "../research/report/hostile-text.js";
import { type InspectedRun, inspectRun } from "./inspect.js";
import type { Project } from "./project.js";
import { writeFiles } from "./written-files.js";

/** What is derived from the ledgers, beside the ledger of the run: for programs, and to find a list run of another name. */
const documentFile = "attribution.json";

export interface AttributionNames {
  readonly list: string;
  readonly smallest: string;
}

export function attributionNames(list: string): AttributionNames {
  return { list, smallest: `${list}-smallest` };
}

/** The list run that takes a run's winner apart: the one that is named, the one that was made before, or the usual name. */
export async function listNameOf(project: Project, run: string, given: string | null): Promise<string> {
  if (given !== null) return given;
  const text = await readFile(join(project.existingRun(run), documentFile), "utf8").catch(() => null);
  return (text === null ? null : listIn(text)) ?? `${run}-attribution`;
}

/** A file that somebody else wrote there names nothing. */
function listIn(text: string): string | null {
  try {
    return attribution.parse(JSON.parse(text)).list;
  } catch {
    return null;
  }
}

/** The attribution of a run as its ledgers have it now; null while there is none. */
export async function readAttribution(project: Project, run: string, given: string | null = null): Promise<Attribution | null> {
  const names = attributionNames(await listNameOf(project, run, given));
  const known = project.runNames();
  if (!known.includes(names.list)) return null;
  const opened: InspectedRun[] = [];
  const open = (name: string): InspectedRun => {
    const inspected = inspectRun(project, name);
    opened.push(inspected);
    return inspected;
  };
  try {
    const [origin, list] = [open(run), open(names.list)];
    const task = recordedTask(list.state);
    if (task === null || !isOf(origin.state, list.state, task.winner)) return null;
    const plan = planOf(origin, task.winner, task.by);
    const smallest = known.includes(names.smallest) ? open(names.smallest) : null;
    return attributionOf(run, plan, asList(list), smallest === null || smallest.state.phase === "new" ? null : asList(smallest));
  } finally {
    for (const each of opened) each.close();
  }
}

/** The same beside another answer, which must not fail over it: what cannot be read is said, and left out. */
export async function attributionBeside(project: Project, run: string, note: (text: string) => void): Promise<Attribution | null> {
  project.existingRun(run);
  try {
    return await readAttribution(project, run);
  } catch (error) {
    if (!(error instanceof TrialistError)) throw error;
    note(printable(`the attribution of ${run} cannot be read: ${error.message}`));
    return null;
  }
}

/** Whether a list run takes this trial of this run apart. */
export function isOf(origin: RunState, list: RunState, winner: string): boolean {
  return (
    list.configuration?.environmentDigest === origin.configuration?.environmentDigest &&
    list.trials["t0"]?.candidate.blob === origin.trials[winner]?.candidate.blob
  );
}

function asList({ name, state, ledger }: InspectedRun): ListRun {
  return { name, state, blobs: { blob: (digest) => ledger.blob(digest) } };
}

/** Writes what is derived beside the run's ledger. */
export async function keepDocument(project: Project, document: Attribution): Promise<void> {
  await writeFiles(project.existingRun(document.run), { [documentFile]: `${JSON.stringify(document, null, 2)}\n` });
}

export function planOf({ state, ledger }: InspectedRun, winner: string, by: Units): AttributionPlan {
  return planAttribution(state, winner, by, { blob: (digest) => ledger.blob(digest) });
}

/** The trial that is taken apart. @throws RefusedError for one that has nothing to take apart */
export function winnerOf(state: RunState, name: string, given: string | null): string {
  const id = given ?? state.leader?.trial ?? "t0";
  const trial = trialNamed(state, id);
  if (trial === null) throw new RefusedError({ expected: "a trial of this run", found: id, todo: `\`trialist show ${name}\` lists them.` });
  configurationOf(state);
  if (trial.kind === "search" && trial.values !== null && trial.candidate.blob !== state.trials["t0"]?.candidate.blob) return id;
  throw new RefusedError({
    expected: "a measured trial that differs from the baseline",
    found: trial.kind === "search" ? id : `${id}, which nobody proposed: nothing was promoted over the baseline`,
    todo: `\`trialist show ${name}\` lists the trials; --trial names another one.`,
  });
}
