import type { Amount } from "../../protocol/budget.js";
import { suspendsRun } from "../../protocol/call-failure.js";
import type { Answer, Command } from "../../protocol/commands.js";
import type { EventData, RunEvent, Violation } from "../../protocol/events.js";
import { violation } from "../admission.js";
import { hasRoomForRound } from "../reservations.js";
import { configurationOf, type OpenCall, type RunState } from "../state.js";
import { halted } from "./acts.js";
import { candidateViolations } from "./candidates.js";
import { type Handler, only, refuse } from "./decision.js";
import { finishing, knowledgeEvents } from "./run.js";
import { type Admission, admitPlan, admitSubmission, admitTrial, planViolations } from "./submissions.js";

type Of<T extends Command["type"]> = Extract<Command, { type: T }>;

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
  if (halted.includes(state.phase)) return [];
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
  // A person stopped the run already; whoever resumes it grants a fresh allowance.
  if (halted.includes(state.phase)) return [];
  const reason = `${bound} calls in a row brought no admissible candidate`;
  if (environment.onExhausted.call === "fail") return finishing(state, reason, true, call);
  return [
    {
      type: "run.suspended",
      data: {
        reason,
        todo: [
          `\`trialist status ${run}\` shows why the last ones were refused, and whether the researcher has run out of ideas.`,
          `\`trialist fork ${run} --name … --researcher …\` goes on from this record with another one, also of another command line;`,
          `a program that you mend in the environment's folder makes another environment: \`trialist run … --warm-start ${run}\`;`,
          `\`trialist finish ${run} --reason …\`, then \`trialist resume ${run}\`, ends the run with what there is;`,
          `\`trialist resume ${run}\` alone asks the same one again.`,
        ].join(" "),
      },
    },
  ];
}

function openCall(state: RunState, id: string): OpenCall {
  const call = state.calls[id];
  if (call === undefined) throw refuse("an open call", `${id}, which has ended or never was`);
  return call;
}
