import type { LimitName, StageLimits } from "../../../core/protocol/outcome.js";

/** What was seen of an execution, as far as limits are concerned. Counters and measurements only, never printed text. */
export interface LimitFacts {
  readonly limits: StageLimits;
  /** The limit for which the tree was killed; null when it ended by itself. */
  readonly killedFor: LimitName | null;
  /** It was stopped from outside, so that no limit ended it. */
  readonly stopped: boolean;
  /** Exit code other than 0, or a signal. */
  readonly endedBadly: boolean;
  /** Processes that the kernel killed because the tree's memory was used up. */
  readonly outOfMemoryKills: number;
  /** Times that the kernel refused a new process or thread, or that all allowed ones were seen alive. */
  readonly processRefusals: number;
  readonly cpuMs: number;
  readonly diskBytes: number;
  /** A temporary folder had no room left. */
  readonly temporaryFull: boolean;
  readonly outputBytes: number;
}

/**
 * The limit that ended an execution. A tree that was seen over a limit is over it however it ended, so that the verdict
 * does not hang on when we looked. A refusal that a program handled well ended nothing: it counts with a bad end only.
 */
export function limitThatEnded(facts: LimitFacts): LimitName | null {
  const { limits } = facts;
  if (facts.killedFor !== null) return facts.killedFor;
  if (facts.stopped) return null;
  if (facts.outOfMemoryKills > 0) return "memory";
  if (facts.cpuMs > limits.cpuMs) return "cpu";
  if (facts.outputBytes > limits.outputBytes) return "output";
  if (facts.diskBytes > limits.diskBytes) return "disk";
  if (!facts.endedBadly) return null;
  if (facts.temporaryFull) return "disk";
  if (facts.processRefusals > 0) return "processes";
  return null;
}
