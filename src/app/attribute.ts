import type { CandidateFiles, FrozenEnvironment } from "../adapters/environments/freeze.js";
import { FrozenEnvironmentError } from "../adapters/environments/frozen-copy.js";
import { drawsOf } from "../core/harness/draw.js";
import { configurationOf, type RunState, trialOf } from "../core/harness/state.js";
import { countedValue, gainOverBaseline } from "../core/harness/trial-values.js";
import type { Promotion } from "../core/protocol/environment.js";
import { RefusedError } from "../core/protocol/errors.js";
import { runName } from "../core/protocol/ids.js";
import { manifestOfTree, type Tree } from "../research/attribution/changes.js";
import type { Attribution } from "../research/attribution/document.js";
import { byMember, recordedTask, wholeMember, winnerMember, withoutMember } from "../research/attribution/list.js";
import { type AttributionPlan, nameOf, sameTree, type Units } from "../research/attribution/plan.js";
import { smallestTree } from "../research/attribution/smallest.js";
import { type AttributionNames, attributionNames, isOf, listNameOf, planOf, readAttribution, winnerOf } from "./attribution.js";
import { freezeFolder, frozenByDigest, type Host } from "./environments.js";
import { type InspectedRun, inspectRun } from "./inspect.js";
import { createListRun } from "./list-run.js";
import type { Project } from "./project.js";
import type { QueuedFiles } from "./record-start.js";
import { readOrigin } from "./run-origin.js";
import { removeUnborn } from "./unborn.js";

export interface AttributionRequest {
  readonly run: string;
  /** Null: the best. */
  readonly trial: string | null;
  /** Of the list run; null: the run's name with `-attribution` behind. */
  readonly name: string | null;
  readonly by: Units | null;
  readonly pairs: number | null;
  /** What counts as no difference; null: by the run's own smallest gain. */
  readonly margin: number | null;
  readonly parallel: number | null;
}

/** A winner that is to be taken apart. Nothing is made by planning it. */
export interface AttributionTask extends AttributionNames {
  readonly run: string;
  readonly plan: AttributionPlan;
  readonly promotion: Promotion;
  readonly environmentDigest: string;
  readonly environmentFolder: string | null;
  readonly sandbox: "bubblewrap" | "none";
  readonly parallel: number;
  /** Of the list run; the smallest recipe has another. */
  readonly seeds: { readonly list: number; readonly smallest: number };
  readonly isBegun: boolean;
  readonly estimate: { readonly measurements: number; readonly atMostMore: number; readonly wallMs: number };
}

/** Two pairs of a noisy recipe give intervals six deviations wide. */
const leastPairs = 3;

/** Reads and plans. @throws RefusedError for a run that cannot be taken apart, or that was, in another way */
export async function planAttribution(project: Project, request: AttributionRequest): Promise<AttributionTask> {
  const { run } = request;
  const names = attributionNames(await listNameOf(project, run, request.name));
  refuseBadNames(names);
  if (project.runNames().includes(names.smallest)) await removeUnborn(project, names.smallest);
  const inspected = inspectRun(project, run);
  try {
    refuseBusy(inspected);
    const { state } = inspected;
    const begun = project.runNames().includes(names.list) ? await begunOf(project, names.list, state, request) : null;
    const winner = begun?.winner ?? winnerOf(state, run, request.trial);
    const plan = planOf(inspected, winner, begun?.by ?? request.by ?? "step");
    const configuration = configurationOf(state);
    const draws = drawsOf(configuration.seed);
    const task = {
      run,
      ...names,
      plan,
      promotion: begun?.promotion ?? promotionOf(state, winner, request),
      environmentDigest: configuration.environmentDigest,
      environmentFolder: (await readOrigin(inspected.folder))?.environmentFolder ?? null,
      sandbox: configuration.sandbox,
      parallel: request.parallel ?? configuration.parallel,
      // Others than the search's: the winner was chosen on those.
      seeds: { list: draws.seed("attribution", 0), smallest: draws.seed("attribution", 1) },
      isBegun: begun !== null,
    };
    return { ...task, estimate: estimateOf(state, task) };
  } finally {
    inspected.close();
  }
}

function refuseBadNames({ list, smallest }: AttributionNames): void {
  if (runName.safeParse(list).success && runName.safeParse(smallest).success) return;
  throw new RefusedError({
    expected: "a name of up to 55 letters, digits, dots, dashes and underscores for the run that measures",
    found: JSON.stringify(list),
    todo: "Give it one with --name.",
  });
}

function refuseBusy({ owner, name }: InspectedRun): void {
  if (owner === null) return;
  throw new RefusedError({
    expected: "a run that nobody works on: its best may still change, and two at once disturb each other's time",
    found: `${name}, which process ${owner.pid ?? "unknown"} works on`,
    todo: `Wait for its end, or \`trialist finish ${name} --reason …\`.`,
  });
}

/** What the list run was made for. An empty one, whose process died before it said so, is removed. */
async function begunOf(
  project: Project,
  list: string,
  origin: RunState,
  request: AttributionRequest,
): Promise<{ readonly winner: string; readonly by: Units; readonly promotion: Promotion } | null> {
  if (await removeUnborn(project, list)) return null;
  const { state, close } = inspectRun(project, list);
  close();
  const task = recordedTask(state);
  const { promotion } = configurationOf(state);
  const differs =
    task === null || !isOf(origin, state, task.winner)
      ? "a run of something else"
      : request.trial !== null && request.trial !== task.winner
        ? `one that takes ${task.winner} apart`
        : request.by !== null && request.by !== task.by
          ? `one by ${task.by}`
          : request.pairs !== null && request.pairs !== promotion.confirmations
            ? `one of ${promotion.confirmations} pairs`
            : request.margin !== null && request.margin !== promotion.minimumGain
              ? `one with the margin ${promotion.minimumGain ?? 0}`
              : null;
  if (task !== null && differs === null) return { ...task, promotion };
  throw new RefusedError({
    expected: `an attribution of ${request.run} with these options under the name ${list}`,
    found: differs ?? "another",
    todo: "Choose another --name, or leave the options away to go on with that one.",
  });
}

/**
 * What counts as no difference is the smallest gain that the search itself could tell apart, or that its operator stated;
 * but no more than half of what the winner gained, so that what "keeps the gain" keeps at least half of it (the preserved
 * fraction of non-inferiority trials: FDA, "Non-Inferiority Clinical Trials to Establish Effectiveness", 2016).
 */
function promotionOf(state: RunState, winner: string, { pairs, margin }: AttributionRequest): Promotion {
  const { promotion } = configurationOf(state);
  const trial = trialOf(state, winner);
  // Where seeds change nothing, only the first comparison told what records can show.
  const counts = promotion.minimumGain ?? state.noise?.smallestGain ?? trial.leaderVerdict?.smallestGain ?? 0;
  const gained = gainOverBaseline(state, countedValue(state, trial));
  return {
    rule: "compare",
    confirmations: pairs ?? Math.max(leastPairs, promotion.confirmations),
    level: promotion.level,
    minimumGain: margin ?? (gained === null || gained <= 0 ? counts : Math.min(counts, gained / 2)),
  };
}

function estimateOf(
  state: RunState,
  { plan, promotion, parallel }: Pick<AttributionTask, "plan" | "promotion" | "parallel">,
): AttributionTask["estimate"] {
  const { noise } = configurationOf(state).environment;
  const each = 1 + 2 * promotion.confirmations;
  const measurements = noise.calibrate + plan.ablations.length * each;
  const atMostMore = noise.calibrate + 2 * each;
  return { measurements, atMostMore, wallMs: ((measurements + atMostMore) * state.pipelineWallMs) / parallel };
}

/** Makes what is missing, and says which list run has to be worked on; null: there is nothing more to measure. */
export async function nextListRun(project: Project, host: Host, task: AttributionTask): Promise<string | null> {
  const document = await readAttribution(project, task.run, task.list);
  if (document === null) {
    await make(project, host, task, { name: task.list, seed: task.seeds.list, baseline: task.plan.winnerTree, queue: ablationsOf(task) });
    return task.list;
  }
  if (document.state !== "done") return document.state === "measuring" ? task.list : null;
  if (document.smallest.state === "measuring") return task.smallest;
  return document.smallest.state === "waiting" ? makeSmallest(project, host, task, document) : null;
}

function ablationsOf({ plan }: AttributionTask): QueuedFiles[] {
  const words = new Map(plan.changes.map((change) => [change.id, change.words]));
  return plan.ablations.map(({ changes, tree }) => ({
    files: filesOf(tree),
    base: "t0",
    hypothesis: `without ${changes.map((id) => `${id} (${(words.get(id) ?? "").slice(0, 500)})`).join(" and ")}`,
    submitter: "attribution",
    move: { [withoutMember]: nameOf(changes), [winnerMember]: plan.winner, [byMember]: plan.by },
  }));
}

async function makeSmallest(project: Project, host: Host, task: AttributionTask, { changes }: Attribution): Promise<string> {
  const { plan, smallest } = task;
  const { tree, leavesOut } = smallestTree(plan, changes);
  if (tree === null) throw new RefusedError({ expected: "changes that can be left out", found: "none" });
  const entry = (whole: string, of: Tree): QueuedFiles => ({
    files: filesOf(of),
    base: "t0",
    hypothesis: `the whole ${whole}, beside it without ${leavesOut.join(", ")}`,
    submitter: "attribution",
    move: { [wholeMember]: whole, [winnerMember]: plan.winner, [byMember]: plan.by },
  });
  const queue = [entry("winner", plan.winnerTree), ...(sameTree(tree, plan.baselineTree) ? [] : [entry("baseline", plan.baselineTree)])];
  await make(project, host, task, { name: smallest, seed: task.seeds.smallest, baseline: tree, queue });
  return smallest;
}

async function make(
  project: Project,
  host: Host,
  task: AttributionTask,
  { name, seed, baseline, queue }: { readonly name: string; readonly seed: number; readonly baseline: Tree; readonly queue: QueuedFiles[] },
): Promise<void> {
  const { environmentDigest, environmentFolder, promotion, parallel, sandbox } = task;
  const frozen = await frozenOf(host, environmentDigest, environmentFolder);
  const starting = { baseline: filesOf(baseline), references: [], queue };
  await createListRun(project, host, { name, frozen, environmentFolder, starting, promotion, seed, parallel, sandbox });
}

/** From the cache; where that is gone, from the folder that it came from, if its files are the same still. */
async function frozenOf(host: Host, digest: string, folder: string | null): Promise<FrozenEnvironment> {
  try {
    return await frozenByDigest(host, digest);
  } catch (error) {
    if (!(error instanceof FrozenEnvironmentError) || folder === null) throw error;
    const again = await freezeFolder(host, folder).catch(() => null);
    if (again?.frozen.digest !== digest) throw error;
    return again.frozen;
  }
}

function filesOf(tree: Tree): CandidateFiles {
  return { manifest: manifestOfTree(tree), contents: new Map([...tree.values()].map(({ digest, bytes }) => [digest, bytes])) };
}
