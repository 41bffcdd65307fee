import { type Amount, exceeds } from "../../protocol/budget.js";
import type { Command } from "../../protocol/commands.js";
import type { Stage } from "../../protocol/environment.js";
import type { RunEvent } from "../../protocol/events.js";
import { primaryMetric } from "../../protocol/measurement.js";
import { configurationOf, type OpenMeasurement, type RunState, trialOf } from "../state.js";
import { type Handler, only, refuse } from "./decision.js";
import { trialEnded } from "./trial-end.js";

type Of<T extends Command["type"]> = Extract<Command, { type: T }>;

/** The stages of one measurement, in order: everything but the held-out ones. */
export function pipelineStages(stages: readonly Stage[]): Stage[] {
  return stages.filter((stage) => stage.trust !== "held-out");
}

/** The most that one pass of the pipeline may use. */
export function worstCase(stages: readonly Stage[]): Amount {
  const computeMs = pipelineStages(stages).reduce((total, stage) => total + stage.limits.cpuMs * stage.repeats, 0);
  return { trials: 0, costUsd: 0, tokens: 0, computeMs };
}

export const startAttempt: Handler<Of<"start_attempt">> = (state, command) => {
  const measurement = open(state, command.measurement);
  if (measurement.running)
    throw refuse("a measurement without a running attempt", `${measurement.id}, attempt ${measurement.attempt} of which runs`);
  const { environment, budget } = configurationOf(state);
  const reservation = worstCase(environment.stages);
  const cap = exceeds(state.budget, budget, reservation);
  if (cap !== null) throw refuse(`room in the ${cap} budget`, "an attempt that may pass it");
  return only({ type: "attempt.started", data: { measurement: measurement.id, attempt: measurement.attempt + 1, reservation } });
};

export const startStage: Handler<Of<"start_stage">> = (state, command) => {
  const measurement = running(state, command.measurement);
  const key = `${command.stage}#${command.repeat}`;
  // After a crash the engine asks again for the stage that it had announced: there is nothing new to record.
  if (measurement.startedStage === key) return only();
  if (measurement.endedStages[key] !== undefined) throw refuse("a stage that has not run in this attempt", `${key} of ${measurement.id}`);
  return only({
    type: "stage.started",
    data: { measurement: measurement.id, attempt: measurement.attempt, stage: command.stage, repeat: command.repeat },
  });
};

export const endStage: Handler<Of<"end_stage">> = (state, command) => {
  const measurement = running(state, command.measurement);
  if (measurement.startedStage !== `${command.stage}#${command.repeat}`)
    throw refuse("a stage that was started", `${command.stage}#${command.repeat} of ${measurement.id}`);
  const { stage, repeat, outcome, stdout, stderr } = command;
  return only({
    type: "stage.ended",
    data: { measurement: measurement.id, attempt: measurement.attempt, stage, repeat, outcome, stdout, stderr },
  });
};

export const endAttempt: Handler<Of<"end_attempt">> = (state, command) => {
  const measurement = running(state, command.measurement);
  const ended: RunEvent = {
    type: "attempt.ended",
    data: { measurement: measurement.id, attempt: measurement.attempt, result: command.result, usage: command.usage },
  };
  switch (command.result.kind) {
    case "measured":
      return only(ended, ...drift(state, measurement, command.result.measured.values));
    case "ended":
      return only(ended, ...baselineFailed(state, measurement, command.result));
    case "evaluator_failure":
      return only(ended, ...evaluatorFailed(configurationOf(state).run, measurement, command.result));
    case "interrupted":
      return only(ended, ...interrupted(state, measurement, command.result.reason));
  }
};

/** An evaluator that fails is nobody's trial: it is tried once more, then a person has to look. */
function evaluatorFailed(run: string, measurement: OpenMeasurement, result: { stage: string; reason: string }): RunEvent[] {
  if (measurement.evaluatorFailures + 1 < 2) return [];
  return [
    {
      type: "run.suspended",
      data: {
        reason: `the evaluator failed twice on ${measurement.subject} (${measurement.id}): ${result.reason}`.slice(0, 4000),
        todo: `This is not the candidate's fault. Look at the output of stage ${result.stage} with \`trialist show ${run} ${measurement.trial}\`, mend the machine, then \`trialist resume ${run}\`; a changed evaluator needs a new run.`,
      },
    },
  ];
}

function interrupted(state: RunState, measurement: OpenMeasurement, reason: string): RunEvent[] {
  const configuration = configurationOf(state);
  if (measurement.attempts < configuration.limits.attempts) return [];
  const trial = trialOf(state, measurement.trial);
  if (configuration.environment.onExhausted.attempt === "suspend" || trial.kind === "baseline") {
    return [
      {
        type: "run.suspended",
        data: {
          reason: `${measurement.attempts} attempts of ${measurement.id} were interrupted; the last: ${reason}`.slice(0, 4000),
          todo: `\`trialist doctor\` says what the machine lacks; then \`trialist resume ${configuration.run}\`.`,
        },
      },
    ];
  }
  const best = state.leader?.trial ?? null;
  const plan: RunEvent[] = trial.plan === null ? [] : [{ type: "plan.closed", data: { plan: trial.plan, outcome: "failed" } }];
  return [trialEnded({ trial: trial.id, status: "infrastructure_error", reason, bestAtEnd: best }), ...plan];
}

/** A baseline that was measured well and fails now says that the host changed, and nothing that is measured meanwhile can be told. */
function baselineFailed(
  state: RunState,
  measurement: OpenMeasurement,
  { status, stage, reason }: Extract<Of<"end_attempt">["result"], { kind: "ended" }>,
): RunEvent[] {
  if (measurement.reason !== "remeasurement") return [];
  const { run } = configurationOf(state);
  const other =
    state.calibrationReused === null ? "" : " The calibration was reused: `trialist run --recalibrate` starts a run with one of its own.";
  return [
    {
      type: "run.suspended",
      data: {
        reason:
          `the baseline was measured again (${measurement.id}) and ended ${status}${stage === null ? "" : ` in stage ${stage}`}: ${reason}`.slice(
            0,
            4000,
          ),
        todo: `It was measured well at calibration, so look for what changed on this machine: \`trialist show ${run} t0\`, \`trialist doctor\`. Then \`trialist resume ${run}\` measures it once more.${other}`,
      },
    },
  ];
}

/** More than this many calibrated deviations from the calibrated mean, and the host is said to have drifted. */
const driftDeviations = 3;

/** A re-measured baseline that left its calibrated range means that the host changed, not that anybody made progress. */
function drift(state: RunState, measurement: OpenMeasurement, values: Readonly<Record<string, number>>): RunEvent[] {
  const { noise } = state;
  if (measurement.reason !== "remeasurement" || noise === null) return [];
  const metric = primaryMetric(configurationOf(state).environment).name;
  const value = values[metric];
  if (value === undefined) return [];
  const distance = Math.abs(value - noise.mean);
  const deviations = noise.sd === null || noise.sd === 0 ? null : distance / noise.sd;
  const drifted = deviations === null ? distance > 0 && noise.deterministic : deviations > driftDeviations;
  if (!drifted) return [];
  const message = `the baseline's ${metric} was ${noise.mean} at calibration and is ${value} now${deviations === null ? "" : `, ${deviations.toFixed(1)} standard deviations away`}${state.calibrationReused === null ? "" : "; the calibration was reused: `--recalibrate` starts a run with one of its own"}`;
  return [{ type: "drift.noticed", data: { measurement: measurement.id, value, mean: noise.mean, deviations, message } }];
}

function open(state: RunState, id: string): OpenMeasurement {
  const measurement = state.measurements[id];
  if (measurement === undefined) throw refuse("an open measurement", `${id}, which has ended or never was`);
  return measurement;
}

function running(state: RunState, id: string): OpenMeasurement {
  const measurement = open(state, id);
  if (!measurement.running) throw refuse("a running attempt", `${id}, no attempt of which runs`);
  return measurement;
}
