import { isOver } from "../../core/harness/due.js";
import type { OpenMeasurement, RunState, Trial } from "../../core/harness/state.js";
import { isHeld } from "../../core/harness/steering.js";
import { oneLine } from "./hostile-text.js";
import { plural } from "./numbers.js";
import { type Paint, plainPaint, table } from "./terminal.js";

/** What waits in a run and what is under way: the JSON of `trialist queue RUN --json`. Seeds are nobody's to pass on. */
export interface QueueView {
  readonly run: string;
  readonly state: RunState["phase"];
  /** Candidates that wait for a trial, the next one first. */
  readonly queue: readonly {
    readonly entry: string;
    readonly hypothesis: string;
    readonly submitter: string;
    readonly base: string;
    readonly candidate: string;
    readonly move: Readonly<Record<string, string | number | null>>;
  }[];
  /** Trials without an end, with what is measured or waits to be measured for them. */
  readonly trials: readonly {
    readonly trial: string;
    readonly phase: Trial["phase"];
    readonly hypothesis: string;
    readonly base: string | null;
    /** By the operator: what it waits for does not start. */
    readonly isHeld: boolean;
    readonly measurements: readonly Waiting[];
  }[];
  readonly calls: readonly {
    readonly call: string;
    readonly role: string;
    readonly researcher: string;
    readonly base: string;
    readonly round: number;
  }[];
}

interface Waiting {
  readonly measurement: string;
  readonly reason: OpenMeasurement["reason"];
  /** The trial whose candidate runs: the leader, in a confirmation beside it. */
  readonly subject: string;
  readonly isRunning: boolean;
}

export function queueView(state: RunState, run: string): QueueView {
  const measurements = Object.values(state.measurements);
  return {
    run,
    state: state.phase,
    queue: state.queue.map(({ id, candidate, ...entry }) => ({ entry: id, ...entry, candidate: candidate.blob })),
    trials: state.openTrials.flatMap((id) => {
      const trial = state.trials[id];
      if (trial === undefined) return [];
      const own = measurements.filter((each) => each.trial === id && each.reason !== "remeasurement");
      const { phase, base } = trial;
      return [
        {
          trial: id,
          phase,
          hypothesis: trial.hypothesis || (trial.name ?? ""),
          base,
          isHeld: isHeld(state, id),
          measurements: own.map(waitingOf),
        },
      ];
    }),
    calls: Object.values(state.calls).map(({ id, role, researcher, base, round }) => ({ call: id, role, researcher, base, round })),
  };
}

function waitingOf({ id, reason, subject, running }: OpenMeasurement): Waiting {
  return { measurement: id, reason, subject, isRunning: running };
}

/** The text of `trialist queue RUN`. */
export function queueText(view: QueueView, paint: Paint = plainPaint): string {
  const { queue, trials, calls } = view;
  const over = isOver(view.state) || view.state === "finishing";
  const waits = over ? "not measured: the run admits no more trials" : "the next one first";
  return `${[
    paint.bold(`${oneLine(view.run)}  ${view.state}`),
    "",
    ...section(paint, `Queue: ${queue.length === 0 ? "empty" : waits}`, queueRows(view)),
    ...section(paint, `Open: ${trials.length === 0 ? "no trial" : plural(trials.length, "trial")}`, trialRows(view)),
    ...section(paint, `Asked: ${calls.length === 0 ? "nobody" : plural(calls.length, "call")}`, callRows(view)),
  ]
    .join("\n")
    .trimEnd()}\n`;
}

function section(paint: Paint, title: string, rows: readonly (readonly string[])[]): string[] {
  return [paint.bold(title), ...table(rows).map((row) => `  ${row}`), ""];
}

function queueRows({ queue }: QueueView): string[][] {
  return queue.map(({ entry, base, submitter, hypothesis }) => [entry, oneLine(submitter, 20), `from ${base}`, oneLine(hypothesis, 100)]);
}

function trialRows({ trials }: QueueView): string[][] {
  return trials.map(({ trial, phase, isHeld: held, measurements, hypothesis }) => [
    trial,
    held ? `${phase}, held` : phase,
    measuredText(measurements),
    oneLine(hypothesis, 100),
  ]);
}

/** `1 first running`, `1 confirmation running, 3 wait`. */
function measuredText(measurements: readonly Waiting[]): string {
  if (measurements.length === 0) return "being judged";
  const reasons = [...new Set(measurements.map(({ reason }) => reason.replace("_of_leader", "").replaceAll("_", " ")))].join(", ");
  const running = measurements.filter(({ isRunning }) => isRunning).length;
  const waiting = measurements.length - running;
  const parts = [running > 0 ? `${running} running` : "", waiting > 0 ? `${waiting} waiting` : ""].filter((part) => part !== "");
  return `${reasons}: ${parts.join(", ")}`;
}

function callRows({ calls }: QueueView): string[][] {
  return calls.map(({ call, role, base, round, researcher }) => [call, `${role} from ${base}`, `round ${round}`, oneLine(researcher, 60)]);
}
