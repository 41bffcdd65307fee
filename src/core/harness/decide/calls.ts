import type { Move } from "../../organizations/organization.js";
import { organizationNamed } from "../../organizations/registry.js";
import type { Amount, BudgetDimension } from "../../protocol/budget.js";
import { exceeds, nothing } from "../../protocol/budget.js";
import { suspendsRun } from "../../protocol/call-failure.js";
import { canonicalJson, digestOf } from "../../protocol/canonical.js";
import type { Answer, CandidateProposal, Command, Decision, PlanProposal, Submission } from "../../protocol/commands.js";
import type { EventData, RunEvent, Violation } from "../../protocol/events.js";
import { violation } from "../admission.js";
import { drawsOf } from "../draw.js";
import { hasRoomForRound, roundReservation } from "../reservations.js";
import { activeTime, configurationOf, type OpenCall, type QueueEntry, type RunState, trialNamed } from "../state.js";
import { activeTrials } from "../steering.js";
import { viewBuilders } from "../views.js";
import { candidateViolations, triedAs } from "./candidates.js";
import { type Handler, only, refuse, withBlobs } from "./decision.js";
import { goodEnough } from "./good-enough.js";
import { finishing, knowledgeEvents } from "./run.js";
import { openSession } from "./sessions.js";

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
  return isAtCap ? only(...finishing(state, `budget: ${cap}${why}`, true)) : only();
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

export const answerCall: Handler<Of<"answer_call">> = (state, command) => {
  const call = openCall(state, command.call);
  const violations = answerViolations(state, call, command.answer);
  if (violations.length > 0) return only(...refusedCall(state, call, command, violations));
  const answered: RunEvent = {
    type: "call.answered",
    data: { call: call.id, round: call.round, output: command.output, ...billOf(command) },
  };
  return only(answered, ...admitAnswer(state, call, command.answer));
};

function answerViolations(state: RunState, call: OpenCall, answer: Answer): readonly Violation[] {
  if (answer.kind === "unreadable") return answer.violations;
  if (answer.kind !== call.expects) return [violation("wrong_kind", `a ${call.expects} was asked for, a ${answer.kind} came`, null)];
  const plan = answer.kind === "proposal" || answer.kind === "plan" ? planViolations(state, call.base, answer) : [];
  const candidate = answer.kind === "proposal" || answer.kind === "candidate" ? candidateViolations(state, answer) : [];
  return [...plan, ...candidate];
}

function admitAnswer(state: RunState, call: OpenCall, answer: Answer): RunEvent[] {
  const admission: Admission = {
    by: { call: call.id },
    base: call.base,
    comparator: call.comparator,
    move: call.move,
    bestAtView: call.bestAtView,
  };
  switch (answer.kind) {
    case "proposal":
      return admitSubmission(state, answer, admission);
    case "plan":
      return admitPlan(`p${state.counters.plan + 1}`, answer, admission);
    case "candidate":
      return admitTrial(state, call.plan, answer, admission);
    case "knowledge":
      return knowledgeEvents(state, { kind: answer.subject, key: answer.key, sources: answer.sources, content: answer.content });
    case "unreadable":
      return [];
  }
}

function refusedCall(state: RunState, call: OpenCall, command: Of<"answer_call">, violations: readonly Violation[]): RunEvent[] {
  const final = isLastRound(state, call, command.usage);
  return [
    {
      type: "call.refused",
      data: { call: call.id, round: call.round, output: command.output, violations: violations.slice(0, 20), final, ...billOf(command) },
    },
    ...suspendLane(state, call.id, final),
  ];
}

export const failCall: Handler<Of<"fail_call">> = (state, command) => {
  const call = openCall(state, command.call);
  const { kind } = command;
  const final = suspendsRun(kind) ? !hasRoomForRound(state, call, command.usage) : isLastRound(state, call, command.usage);
  const message = command.message.slice(0, 4000);
  const todo = command.todo.slice(0, 1500);
  const failed: RunEvent = {
    type: "call.failed",
    data: { call: call.id, round: call.round, kind, message, todo, final, ...billOf(command) },
  };
  return only(failed, ...(suspendsRun(kind) && !final ? suspendWithCall(state, command) : suspendLane(state, call.id, final)));
};

/** A call ends with its rounds, and with the budget that another one would need. */
function isLastRound(state: RunState, call: OpenCall, used: Amount): boolean {
  return call.round >= configurationOf(state).limits.callRounds || !hasRoomForRound(state, call, used);
}

/** The call stays open: the same question is asked again when the run is resumed. */
function suspendWithCall(state: RunState, { message, todo }: Of<"fail_call">): RunEvent[] {
  if (state.phase === "paused" || state.phase === "suspended") return [];
  const { run } = configurationOf(state);
  const resume = `Then \`trialist resume ${run}\`: the same question is asked again.`;
  return [{ type: "run.suspended", data: { reason: message.slice(0, 4000), todo: `${todo} ${resume}`.trim().slice(0, 2000) } }];
}

function billOf({
  usage,
  model,
  traffic,
}: Of<"answer_call"> | Of<"fail_call">): Pick<EventData<"call.answered">, "usage" | "model" | "traffic"> {
  return { usage, model, traffic };
}

/** Refusals have their own bound, so that a researcher that is always refused suspends the run instead of spinning. */
function suspendLane(state: RunState, call: string, final: boolean): RunEvent[] {
  const { environment, limits, run } = configurationOf(state);
  const bound = limits.refusedCalls;
  if (!final || state.callCounts.refusedInARow + 1 < bound) return [];
  const reason = `${bound} calls in a row brought no admissible candidate`;
  if (environment.onExhausted.call === "fail") return finishing(state, reason, true, call);
  return [
    {
      type: "run.suspended",
      data: {
        reason,
        todo: `\`trialist status ${run}\` shows why the last ones were refused, and whether the researcher has run out of ideas; mend it, then \`trialist resume ${run}\`.`,
      },
    },
  ];
}

/** Push: a session, an MCP client or a person hands in a candidate that nobody asked for. Same door, same rules. */
export const submit: Handler<Of<"submit">> = (state, command) => {
  if (state.phase !== "searching") throw refuse("a run that is searching", `a run that is ${state.phase}`);
  const configuration = configurationOf(state);
  const base = state.trials[command.base];
  if (base === undefined || base.retracted) throw refuse("a base trial of this run that stands", command.base);
  if ("session" in command.by && state.sessions[command.by.session] === undefined) throw refuse("an open session", command.by.session);
  const cap = exceeds(state.budget, configuration.budget, { trials: 1, costUsd: 0, tokens: 0, computeMs: 0 });
  const violations = [
    ...planViolations(state, command.base, command.submission),
    ...candidateViolations(state, command.submission),
    ...(cap === null ? [] : [violation("budget", `the ${cap} budget is used up`, null)]),
  ];
  const plan = `p${state.counters.plan + 1}`;
  const admission: Admission = {
    by: command.by,
    base: command.base,
    comparator: command.base,
    move: {},
    bestAtView: state.leader?.trial ?? null,
  };
  if (violations.length > 0)
    return only(proposed(plan, command.submission, admission), { type: "plan.refused", data: { plan, violations } });
  const session: RunEvent[] = "session" in command.by ? [{ type: "session.submitted", data: { session: command.by.session, plan } }] : [];
  return only(...admitSubmission(state, command.submission, admission), ...session);
};

function planViolations(state: RunState, base: string, proposal: PlanProposal): readonly Violation[] {
  const organization = organizationNamed(configurationOf(state).organization.name);
  const unknown = proposal.respondsTo.filter((id) => trialNamed(state, id) === null);
  return [
    ...unknown.map((id) => violation("unknown_trial", `plan.responds_to names ${id}, and this run has no such trial`, null)),
    ...(organization.admit?.(state.organization, state, { base, commitment: proposal.commitment }) ?? []),
  ];
}

interface Admission {
  readonly by: { readonly call: string } | { readonly session: string } | { readonly submitter: string };
  readonly base: string;
  readonly comparator: string;
  readonly move: Readonly<Record<string, string | number | null>>;
  readonly bestAtView: string | null;
}

function proposed(plan: string, proposal: PlanProposal, admission: Admission): RunEvent {
  return {
    type: "plan.proposed",
    data: {
      plan,
      by: admission.by,
      base: admission.base,
      parents: [admission.base],
      respondsTo: [...proposal.respondsTo],
      hypothesis: proposal.hypothesis,
      expectedGain: proposal.expectedGain,
      commitment: { ...proposal.commitment },
      comparator: admission.comparator,
    },
  };
}

function admitPlan(plan: string, proposal: PlanProposal, admission: Admission): RunEvent[] {
  return [proposed(plan, proposal, admission), { type: "plan.admitted", data: { plan } }];
}

function admitSubmission(state: RunState, submission: Submission, admission: Admission): RunEvent[] {
  const plan = `p${state.counters.plan + 1}`;
  return [...admitPlan(plan, submission, admission), ...admitTrial(state, plan, submission, admission)];
}

function admitTrial(
  state: RunState,
  plan: string | null,
  proposal: Pick<CandidateProposal, "candidate">,
  admission: Admission,
): RunEvent[] {
  const trial = `t${state.counters.trial + 1}`;
  const best = { bestAtView: admission.bestAtView, bestAtSubmission: state.leader?.trial ?? null };
  return [
    {
      type: "trial.admitted",
      data: {
        trial,
        kind: "search",
        plan,
        candidate: proposal.candidate,
        base: admission.base,
        parents: [admission.base],
        move: { ...admission.move },
        name: null,
        ...best,
      },
    },
    {
      type: "measurement.requested",
      data: {
        measurement: `m${state.counters.measurement + 1}`,
        trial,
        subject: trial,
        reason: "first",
        purpose: "in-loop",
        pair: 0,
        round: 0,
        seed: configurationOf(state).environment.seed,
      },
    },
  ];
}

function openCall(state: RunState, id: string): OpenCall {
  const call = state.calls[id];
  if (call === undefined) throw refuse("an open call", `${id}, which has ended or never was`);
  return call;
}
