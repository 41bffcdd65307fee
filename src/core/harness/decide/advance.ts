import type { Move } from "../../organizations/organization.js";
import { organizationNamed } from "../../organizations/registry.js";
import type { Amount, BudgetDimension } from "../../protocol/budget.js";
import { exceeds, nothing } from "../../protocol/budget.js";
import { canonicalJson, digestOf } from "../../protocol/canonical.js";
import type { Command, Decision } from "../../protocol/commands.js";
import type { RunEvent } from "../../protocol/events.js";
import { budgetUsedUp } from "../budget-sentences.js";
import { drawsOf } from "../draw.js";
import { roundReservation } from "../reservations.js";
import { activeTime, configurationOf, type QueueEntry, type RunState, trialNamed } from "../state.js";
import { activeTrials } from "../steering.js";
import { viewBuilders } from "../views.js";
import { triedAs } from "./candidates.js";
import { type Handler, only, refuse, withBlobs } from "./decision.js";
import { goodEnough } from "./good-enough.js";
import { finishing } from "./run.js";
import { openSession } from "./sessions.js";
import { type Admission, admitPlan, admitTrial } from "./submissions.js";

type Of<T extends Command["type"]> = Extract<Command, { type: T }>;

/** Asks the organization what comes next, when there is room for one more trial. */
export const advance: Handler<Of<"advance">> = (state, command) => {
  const configuration = configurationOf(state);
  const remeasurement = dueRemeasurement(state);
  if (remeasurement !== null) return only(remeasurement);
  const full = exceeds(state.budget, configuration.budget, { ...nothing, trials: 1 });
  if (full !== null) return exhausted(state, full);
  const { wallMs } = configuration.budget;
  if (wallMs !== null && activeTime(state, command.at) + state.pipelineWallMs > wallMs) {
    // A trial that cannot end in the time that is left would be cancelled half-way: it is not started.
    return idle(state) ? only(...finishing(state, "budget: wall-clock, the time left is less than one trial takes", true)) : only();
  }
  const [queued] = state.queue;
  if (queued !== undefined) return admitQueued(state, queued);
  const enough = goodEnough(state);
  if (enough !== null) return idle(state) ? only(...finishing(state, enough, true)) : only();
  const move = organizationNamed(configuration.organization.name).next(state.organization, state, drawsOf(configuration.seed));
  switch (move.kind) {
    case "wait":
      return only();
    case "finish":
      return only(...finishing(state, move.reason, true));
    case "schedule":
      return only({
        type: "wake_up.scheduled",
        data: { wakeUp: move.wakeUp, dueAtActiveMs: activeTime(state, command.at) + move.afterActiveMs },
      });
    case "session":
      return openSession(state, {
        at: command.at,
        type: "open_session",
        role: move.role,
        researcher: researcherFor(state, move.role),
        base: move.base,
        reopens: move.reopens,
      });
    case "call":
      return requestCall(state, move, command.at);
  }
};

function requestCall(state: RunState, move: Extract<Move, { kind: "call" }>, at: number): Decision {
  const configuration = configurationOf(state);
  const number = state.counters.call + 1;
  const expects = move.expects ?? "proposal";
  const reservation = roundReservation(state, { role: move.role, expects });
  const cap = exceeds(state.budget, configuration.budget, reservation);
  if (cap !== null) return exhausted(state, cap, tooDear(state, cap, move.role, reservation));
  const bytes = new TextEncoder().encode(canonicalJson(viewBuilders[move.view ?? "proposal"](state, move.role, move.base, at)));
  const view = { blob: digestOf(bytes), bytes: bytes.byteLength };
  return withBlobs([{ digest: view.blob, bytes }], {
    type: "call.requested",
    data: {
      call: `c${number}`,
      role: move.role,
      researcher: researcherFor(state, move.role),
      view,
      viewVersion: state.version,
      base: move.base,
      comparator: move.comparator,
      expects,
      plan: move.plan ?? null,
      move: { ...move.detail },
      seed: drawsOf(configuration.seed).seed("call", number),
      bestAtView: state.leader?.trial ?? null,
      reservation,
    },
  });
}

function researcherFor(state: RunState, role: string): string {
  const { researchers, alternates } = configurationOf(state);
  const everyone = researchers["*"];
  const turns = everyone === undefined ? [] : [everyone, ...alternates];
  const name = researchers[role] ?? turns[state.counters.call % turns.length];
  if (name === undefined) throw refuse(`a researcher for role ${role}, or for *`, "none in the run's configuration");
  return name;
}

function exhausted(state: RunState, cap: string, why = ""): ReturnType<Handler<never>> {
  // What is in flight may free its reservation: only an idle run is at its cap. An open turn holds no trial.
  const isAtCap = cap === "trials" ? idle(state) : holdsNothing(state);
  return isAtCap ? only(...finishing(state, `${budgetUsedUp.write(cap)}${why}`, true)) : only();
}

function tooDear(state: RunState, cap: BudgetDimension, role: string, wanted: Amount): string {
  const { budget } = configurationOf(state);
  const left = Math.max(0, (budget[cap] ?? 0) - state.budget.spent[cap] - state.budget.reserved[cap]);
  return `, ${Number(left.toPrecision(4))} is left and a call of ${role} may use ${Number(wanted[cap].toPrecision(4))}`;
}

/** Nothing is open that may become a trial or change the best. */
function idle(state: RunState): boolean {
  return activeTrials(state).length === 0 && Object.keys(state.calls).length === 0;
}

/** Nothing holds a reservation that it may give back. */
function holdsNothing(state: RunState): boolean {
  return idle(state) && !Object.values(state.sessions).some((session) => session.isTurnOpen);
}

function dueRemeasurement(state: RunState): RunEvent | null {
  const { environment, seed } = configurationOf(state);
  const every = environment.noise.remeasureEvery;
  // A calibration of another day is looked at once before anything is searched, so that a host that changed is seen.
  const isUnchecked = state.calibrationReused?.checked === false;
  if (!isUnchecked && (every === 0 || state.searchTrialsEnded - state.remeasuredAt < every)) return null;
  if (Object.values(state.measurements).some((measurement) => measurement.reason === "remeasurement")) return null;
  const number = state.counters.measurement + 1;
  return {
    type: "measurement.requested",
    data: {
      measurement: `m${number}`,
      trial: "t0",
      subject: "t0",
      reason: "remeasurement",
      purpose: "in-loop",
      pair: 0,
      round: 0,
      seed: drawsOf(seed).seed("remeasurement", number),
    },
  };
}

/** What waits in the queue was checked when it came; what it stands on may have fallen since. */
function admitQueued(state: RunState, entry: QueueEntry): Decision {
  const drop = (reason: string): Decision => only({ type: "queue.removed", data: { entry: entry.id, reason } });
  if (trialNamed(state, entry.base)?.retracted !== false) return drop(`its base ${entry.base} was retracted`);
  const twin = triedAs(state, entry.candidate);
  if (twin !== undefined) return drop(`it is the same content as trial ${twin}, which was measured meanwhile`);
  const plan = `p${state.counters.plan + 1}`;
  const admission: Admission = {
    by: { submitter: entry.submitter },
    base: entry.base,
    comparator: entry.base,
    move: { ...entry.move, queue: entry.id },
    bestAtView: state.leader?.trial ?? null,
  };
  const proposal = { hypothesis: entry.hypothesis, expectedGain: null, respondsTo: [], commitment: {} };
  return only(...admitPlan(plan, proposal, admission), ...admitTrial(state, plan, entry, admission));
}
