import { configurationOf, type Trial } from "../../core/harness/state.js";
import { primaryMetric } from "../../core/protocol/measurement.js";
import { type Classified, classify } from "./classify.js";
import type { AttributedChange, Attribution } from "./document.js";
import { type ListRun, stateOf, trialsBy, withoutMember } from "./list.js";
import { type Measured, measuredOf } from "./measured.js";
import { type AttributionPlan, nameOf } from "./plan.js";
import { smallestOf } from "./smallest.js";

/** The answer, from what the two list runs have recorded so far. `smallest`: null while that run does not exist. */
export function attributionOf(run: string, plan: AttributionPlan, list: ListRun, smallest: ListRun | null): Attribution {
  const { promotion, environment } = configurationOf(list.state);
  const margin = promotion.minimumGain ?? 0;
  const trials = trialsBy(list.state, withoutMember);
  const alone = plan.ablations.filter(({ changes }) => changes.length === 1);
  const measured = alone.map(({ changes }) => measuredOf(list.state, trials.get(nameOf(changes)), list.blobs));
  const classes = classify(measured, promotion.level, margin);
  const byId = new Map(
    alone.map(({ changes: [id = ""] }, index) => [
      id,
      { measured: measured[index] as Measured, classified: classes[index] as Classified, trial: trials.get(id)?.id ?? null },
    ]),
  );
  const changes = plan.changes.map((change) => ({
    change: change.id,
    base: change.base,
    words: change.words,
    paths: change.files.map(({ path }) => path),
    ...answerOf(plan, change.id, byId.get(change.id), stateOf(list.state)),
  }));
  return {
    schema: "trialist/attribution@1",
    run,
    winner: plan.winner,
    by: plan.by,
    list: list.name,
    state: stateOf(list.state),
    metric: primaryMetric(environment).name,
    pairs: promotion.confirmations,
    level: promotion.level,
    margin,
    changes,
    groups: groupsOf(plan, list, trials),
    smallest: smallestOf(plan, { margin, changes, list }, smallest),
    note: stateOf(list.state) === "failed" ? list.state.reason : "",
  };
}

type Answer = Pick<AttributedChange, "class" | "gain" | "adjustedP" | "trial" | "with" | "note">;

function answerOf(
  plan: AttributionPlan,
  id: string,
  known: { readonly measured: Measured; readonly classified: Classified; readonly trial: string | null } | undefined,
  state: Attribution["state"],
): Answer {
  const nothing = { gain: null, adjustedP: null, trial: null, with: [] as string[] };
  if (plan.absent.has(id)) return { ...nothing, class: "absent", note: "later changes left nothing of it" };
  const entangled = plan.entangled.get(id);
  if (entangled !== undefined) {
    const where = `it stands on the same lines of ${entangled.paths.join(", ")}`;
    const note = entangled.together ? `${where}: left out together` : `${where}, and cannot be taken out even with them`;
    return { ...nothing, class: "entangled", with: [...entangled.with], note };
  }
  const inadmissible = plan.inadmissible.get(id);
  if (inadmissible !== undefined) return { ...nothing, class: "undecided", note: `without it the rest is no candidate: ${inadmissible}` };
  if (known === undefined) return { ...nothing, class: "undecided", note: "not measured" };
  const { measured, classified, trial } = known;
  // Somebody ended the list run before it was worked off.
  if (measured.kind === "open" && state !== "measuring") return { ...nothing, trial, class: "undecided", note: "not measured" };
  return { ...nothing, ...classified, trial, gain: measured.kind === "compared" ? measured.gain : null };
}

function groupsOf(plan: AttributionPlan, { state, blobs }: ListRun, trials: ReadonlyMap<string, Trial>): Attribution["groups"] {
  return plan.ablations
    .filter(({ changes }) => changes.length > 1)
    .map(({ changes }) => {
      const trial = trials.get(nameOf(changes));
      const measured = measuredOf(state, trial, blobs);
      const note = measured.kind === "failed" ? measured.reason : "";
      return { changes: [...changes], trial: trial?.id ?? null, gain: measured.kind === "compared" ? measured.gain : null, note };
    });
}
