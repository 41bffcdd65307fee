import { z } from "zod";
import { amount, budgetLimits } from "../../core/protocol/budget.js";
import { promotionRules } from "../../core/protocol/environment.js";
import { gate } from "../../core/protocol/gate.js";
import { guarantees } from "../../core/protocol/outcome.js";
import { trialStatus } from "../../core/protocol/status.js";
import { noise, verdict } from "../../core/protocol/verdict.js";
import { attribution } from "../attribution/document.js";

/**
 * The JSON of `trialist status RUN --json`. Numbers have full precision and the metric's own unit; gains are positive
 * when better, whatever the metric's direction; times are milliseconds. A member that is not known is null, never left
 * out. Members may be added under this version; none is removed or changes its meaning.
 */
export const summarySchemaName = "trialist/status@1";

/** A gain, and how sure it is. */
export const gainSummary = z.strictObject({
  /** Estimated gain over `over`. */
  value: z.number(),
  /** One-sided bounds at `level` each: together an interval at 1 − 2·level. Null where the rule knows none (rule `any`). */
  lower: z.number().nullable(),
  upper: z.number().nullable(),
  level: z.number(),
  /** The trial that it was compared with: the leader of that time. Null when that is no longer known. */
  over: z.string().nullable(),
  result: verdict.shape.result,
  /** What the interval stands on. */
  basis: verdict.shape.basis,
  /** The smallest true gain that this comparison would see half of the time. */
  smallestGain: z.number().nullable(),
  /** Seed pairs and records that were used. */
  seeds: z.number(),
  records: z.number(),
});
export type GainSummary = z.infer<typeof gainSummary>;

export const bestSummary = z.strictObject({
  /** `t0` while nothing was promoted. */
  trial: z.string(),
  /** The estimate that counts: the mean of fresh confirmations where there are any (free of the winner's curse), else the in-loop value. For `t0`, its calibrated mean. */
  value: z.number(),
  /**
   * Interval of `value` itself, at 1 − 2·level, from the confirmations' spread over seeds and, where they were read,
   * over records. Null when it cannot be known (no confirmation; seeds that change nothing and records not read). It is
   * not the interval of the gain, which is in `gain` and is narrower, because gains are measured in pairs.
   */
  interval: z.tuple([z.number(), z.number()]).nullable(),
  /** The first in-loop value, the one that made it a candidate: optimistic by selection. */
  provisionalValue: z.number().nullable(),
  /** Whether `value` stands on fresh confirmations. */
  confirmed: z.boolean(),
  /** The beginning of its hypothesis; empty for `t0`. */
  hypothesis: z.string(),
  /** Trials between it and the keep (or baseline) below it, oldest first: not kept themselves, and what they changed is part of it. */
  builtOn: z.array(z.strictObject({ trial: z.string(), hypothesis: z.string() })),
  /** Taken from the candidate's own output. */
  selfReported: z.boolean(),
  /** The leader's verdict when it was promoted; null for `t0`. */
  gain: gainSummary.nullable(),
  /**
   * Gain over the baseline. Where the verdict was against the baseline itself (`gain.over` is `t0`): its paired gain with
   * its bounds. Else `value` against the calibrated mean, without bounds: the intervals of the steps do not add up to
   * one. `percent` is of the baseline that it was compared with: `beside`, its mean in those pairs, else the calibrated mean.
   * Null for `t0`.
   */
  overBaseline: z
    .strictObject({
      absolute: z.number(),
      percent: z.number().nullable(),
      beside: z.number().nullable(),
      lower: z.number().nullable(),
      upper: z.number().nullable(),
    })
    .nullable(),
  /** Retracted trials that it was built on or compared with. Not empty: look before you trust it. */
  restsOnRetracted: z.array(z.string()),
});

const failureGroup = z.strictObject({
  status: trialStatus,
  stage: z.string().nullable(),
  reason: z.string(),
  n: z.number(),
  /** The newest, at most five. */
  trials: z.array(z.string()),
});
export type FailureGroup = z.infer<typeof failureGroup>;

const failureCause = z.strictObject({
  status: trialStatus,
  stage: z.string().nullable(),
  /** The line of the output that says why, without numbers, folders and addresses; the reason where no output was read. */
  cause: z.string(),
  n: z.number(),
  /** The newest, at most five. */
  trials: z.array(z.string()),
  /** The newest, with its line as it was printed. Hostile text. */
  example: z.strictObject({ trial: z.string(), line: z.string() }),
  /** What a person may do about it; empty where nothing is known. */
  hint: z.string(),
});
export type FailureCause = z.infer<typeof failureCause>;

export const runSummary = z.strictObject({
  schema: z.literal(summarySchemaName),
  /** The run's name; null before it has started. */
  run: z.string().nullable(),
  state: z.enum(["new", "calibrating", "searching", "finishing", "paused", "suspended", "finished", "cancelled"]),
  /** Why it is in this state, and what a person should do about it; empty when there is nothing to say. */
  reason: z.string(),
  todo: z.string(),
  /** The run whose record this one begins with, up to which event and trial (null: the newest of that moment), and what it inherited. */
  forkedFrom: z
    .strictObject({
      run: z.string(),
      trial: z.string().nullable(),
      sequence: z.number(),
      chain: z.string(),
      afterTrials: z.number(),
      reason: z.string(),
      afterHeldoutLook: z.string().nullable(),
      /** Spent by the source; part of `spend`, and counted by the caps. */
      inherited: amount.extend({ activeMs: z.number() }),
    })
    .nullable(),
  /** When the finished run was extended, and why; `afterHeldoutLook`: why although somebody had looked at held-out data. */
  extensions: z.array(z.strictObject({ afterTrials: z.number(), reason: z.string(), afterHeldoutLook: z.string().nullable() })),
  environment: z.strictObject({ name: z.string(), digest: z.string() }).nullable(),
  organization: z.string().nullable(),
  researchers: z.record(z.string(), z.string()),
  metric: z.strictObject({ name: z.string(), direction: z.enum(["minimize", "maximize"]), selfReported: z.boolean() }).nullable(),
  /** The promotion rule in force. */
  rule: z
    .strictObject({
      name: z.enum(promotionRules),
      confirmations: z.number(),
      level: z.number(),
      minimumGain: z.number().nullable(),
    })
    .nullable(),
  /** How often this rule keeps what is no better, as known here when the run started; null: never measured. */
  gate: gate.nullable(),
  /** As calibrated; null before that. */
  baseline: z.strictObject({ mean: z.number(), sd: z.number().nullable(), n: z.number() }).nullable(),
  /** Calibrated noise, with the smallest gain that the rule can see. */
  noise: noise.nullable(),
  /** Whose calibration was taken over instead of measured; null: it is the run's own. */
  calibrationReused: z.strictObject({ run: z.string(), measuredAt: z.number() }).nullable(),
  best: bestSummary.nullable(),
  /** Searched trials that ended, by status; every status is named. */
  trials: z.record(trialStatus, z.number()),
  progress: z.strictObject({
    /** Searched trials that ended. */
    done: z.number(),
    cap: z.number().nullable(),
    /** Searched trials that have no end yet. */
    open: z.number(),
    /** Of these, the ones under confirmation. */
    provisional: z.number(),
    openCalls: z.number(),
    openSessions: z.number(),
    /** Candidates that wait in the operator's queue. */
    queued: z.number(),
  }),
  /** What the run's own keeps say of its next trials: an extrapolation. Null before the run has started. */
  saturation: z
    .strictObject({
      /** The chance that the next `horizon` trials bring a keep; null while too few trials have ended to say. */
      chance: z.number().nullable(),
      horizon: z.number(),
      /** What it is estimated from: trials that said something about their candidate, and keeps among them that stand. */
      trials: z.number(),
      keeps: z.number(),
      /** The run ends at this chance or below; null: not for that reason. */
      endsAt: z.number().nullable(),
    })
    .nullable(),
  time: z.strictObject({
    activeMs: z.number(),
    /** Estimate of the active time that is left; null when nothing bounds the run or nothing is known yet; 0 at the end. */
    leftMs: z.number().nullable(),
  }),
  spend: z.strictObject({
    trials: z.number(),
    costUsd: z.number(),
    tokens: z.number(),
    computeMs: z.number(),
    activeMs: z.number(),
    /** Set aside for what is in flight. */
    reserved: amount,
    caps: budgetLimits.nullable(),
  }),
  /** What the run is expected to take, from calibration and from what trials have used so far; null before calibration. */
  expectedCost: z
    .strictObject({
      /** One pass of the pipeline. */
      pipelineWallMs: z.number(),
      pipelineCpuMs: z.number(),
      /** Further passes that one confirmation takes: candidate and leader, on each fresh seed. */
      passesPerConfirmation: z.number(),
      /** At the trial cap, if trials go on costing what they cost: null without a cap, without an ended trial, and once the run is over. */
      atCap: z.strictObject({ costUsd: z.number(), tokens: z.number(), computeMs: z.number() }).nullable(),
    })
    .nullable(),
  /** What was kept by the rule in force, beside what the rule `any` would have kept. */
  keeps: z.strictObject({ underRule: z.number(), underAny: z.number() }),
  /** The best raw in-loop value: the claim that a run without confirmation would have made. */
  bestUnderAny: z
    .strictObject({ trial: z.string(), value: z.number(), gainOverBaseline: z.number().nullable(), retracted: z.boolean() })
    .nullable(),
  references: z.array(
    z.strictObject({
      trial: z.string(),
      name: z.string(),
      status: trialStatus.nullable(),
      value: z.number().nullable(),
      gainOverBaseline: z.number().nullable(),
      reason: z.string(),
    }),
  ),
  /** Language models that were asked, by provider and model. `answers` counts failed ones too. */
  models: z.array(
    z.strictObject({
      model: z.string(),
      answers: z.number(),
      tokens: z.number(),
      costUsd: z.number(),
      /** Requests whose use nobody told, billed at the most that they can have used. */
      billedAtWorst: z.number(),
      warnings: z.array(z.string()),
    }),
  ),
  calls: z.strictObject({
    answered: z.number(),
    refused: z.number(),
    failed: z.number(),
    lastViolations: z.array(z.strictObject({ code: z.string(), message: z.string(), path: z.string().nullable() })),
  }),
  /**
   * Invalid searched trials and infrastructure errors: grouped by status, stage and reason, and by status, stage and what
   * their output says went wrong; most frequent first, the first twenty of each.
   */
  failures: z.strictObject({ total: z.number(), groups: z.array(failureGroup), causes: z.array(failureCause) }),
  /** What the output of a failed stage suggests to the operator, with its trial; null when it suggests nothing or was not read. */
  hint: z.string().nullable(),
  /** Which changes the best owes its gain to; null where nobody took it apart, or where it was not read. */
  attribution: attribution.nullable(),
  drift: z.array(z.strictObject({ measurement: z.string(), message: z.string() })),
  /** Trials that the operator holds or has pinned, with why. */
  steered: z.array(z.strictObject({ trial: z.string(), steer: z.enum(["held", "pinned"]), reason: z.string() })),
  /** `reason` and `dependents` are null where the ledger's events were not read. */
  retractions: z.array(z.strictObject({ trial: z.string(), reason: z.string().nullable(), dependents: z.array(z.string()).nullable() })),
  /** The run ended without one valid trial. */
  nullRun: z.boolean(),
  sandbox: z.enum(["bubblewrap", "none"]).nullable(),
  /** Distinct sets of guarantees that held, with the number of measurements; null where the ledger's events were not read. */
  guarantees: z.array(z.strictObject({ held: guarantees, measurements: z.number() })).nullable(),
});
export type RunSummary = z.infer<typeof runSummary>;
