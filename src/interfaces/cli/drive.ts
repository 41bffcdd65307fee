import type { OwnedRun } from "../../app/own-run.js";
import type { StoredRunEvent } from "../../core/protocol/events.js";
import { failureHint } from "../../research/report/failure-hint.js";
import { liveLine, trialLine } from "../../research/report/progress-line.js";
import { reusedText } from "../../research/report/reused-calibration-text.js";
import { exitCodes } from "./command.js";
import type { Terminal } from "./terminal.js";

/**
 * Drives a run to its end with live progress. Ctrl-C once: the current step ends and the run is paused. Twice: it is
 * left at once; what still runs ends by itself and is collected by `resume`.
 */
export async function driveRun(owned: OwnedRun, name: string, terminal: Terminal): Promise<number> {
  const { run, runner } = owned;
  let hinted = false;
  const stopListening = run.onEvent((event) => {
    if (event.type === "trial.ended") {
      terminal.note(trialLine(run.state, event.data.trial, terminal.notePaint));
      const found = hinted ? null : failureHint(run.state, run.state.trials[event.data.trial], (digest) => run.ledger.blob(digest));
      if (found !== null) terminal.note(`${event.data.trial}: ${found}`);
      hinted ||= found !== null;
    }
    if (event.type === "run.calibrated" || event.type === "drift.noticed")
      terminal.note(`${noticeOf(event)}${event.type === "run.calibrated" ? reusedText(run.state.calibrationReused) : ""}`);
    terminal.live(liveLine(run.state, Date.now()));
  });
  const tick = setInterval(() => terminal.live(liveLine(run.state, Date.now())), 1000);
  let interrupts = 0;
  const interrupt = (): void => {
    interrupts += 1;
    if (interrupts === 1) {
      terminal.note("Stopping after the current step; everything is saved. Once more to leave at once.");
      runner.command({ type: "pause", reason: "interrupted from the keyboard or by a signal" });
    } else runner.leave();
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, interrupt);
  try {
    await runner.work();
  } finally {
    for (const signal of signals) process.off(signal, interrupt);
    clearInterval(tick);
    stopListening();
    terminal.live("");
    await owned.close();
  }
  if (interrupts > 0) {
    terminal.note(`\`trialist resume ${name}\` goes on.`);
    return exitCodes.interrupted;
  }
  return exitCodeOf(run.state.phase);
}

function noticeOf(event: Extract<StoredRunEvent, { type: "run.calibrated" | "drift.noticed" }>): string {
  if (event.type === "drift.noticed") return `WARNING drift: ${event.data.message}`;
  const { noise, pipelineWallMs } = event.data;
  const seen = noise.smallestGain === null ? "known after the first comparison" : String(Number(noise.smallestGain.toPrecision(3)));
  return `calibrated: ${noise.n} repetitions, mean ${Number(noise.mean.toPrecision(6))}, sd ${noise.sd === null ? "unknown" : Number(noise.sd.toPrecision(3))}${noise.deterministic ? " (deterministic)" : ""}; smallest gain that counts: ${seen}; one measurement takes ${(pipelineWallMs / 1000).toFixed(1)} s`;
}

function exitCodeOf(phase: string): number {
  return phase === "finished" ? exitCodes.ok : phase === "cancelled" ? exitCodes.refused : exitCodes.suspended;
}
