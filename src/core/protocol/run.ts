import { z } from "zod";
import { type Amount, budgetLimits } from "./budget.js";
import { environment, promotion } from "./environment.js";
import { gate } from "./gate.js";
import { runName } from "./ids.js";

/** When to end before the budget does; null: never for that reason. */
export const stopRule = z.strictObject({
  /** A value of the first metric that is good enough, once the best has it. */
  target: z.number().nullable(),
  /** Searched trials in a row that brought no keep. */
  patience: z.number().int().positive().nullable(),
  /** The chance of a keep among the next `horizon` trials that is too small to go on for. Older runs do not name it. */
  saturation: z
    .strictObject({ probability: z.number().positive().max(1), horizon: z.number().int().min(1).max(1000) })
    .nullable()
    .default(null),
});
export type StopRule = z.infer<typeof stopRule>;

/** A run, resolved and frozen: what `run.started` holds. No later decision changes it; a person who extends the run sets its caps anew. */
export const runConfiguration = z.strictObject({
  run: runName,
  environment,
  /** Digest over the contract and every file that it names. */
  environmentDigest: z.string().length(64),
  organization: z.strictObject({ name: z.string().max(40), configuration: z.record(z.string(), z.unknown()) }),
  /** Role → researcher name; `*` is everyone else's. */
  researchers: z.record(z.string(), z.string().min(1).max(8000)),
  /** They take turns with the researcher of `*`, call by call; ledgers of older builds have none. */
  alternates: z.array(z.string().min(1).max(8000)).max(20).default([]),
  /** Researcher name → its settings, resolved and without secrets; what they hold is the business of its adapter. */
  researcherSettings: z.record(z.string(), z.record(z.string(), z.unknown())),
  budget: budgetLimits,
  promotion,
  stop: stopRule,
  /** Varies researchers and policy draws, nothing else. */
  seed: z.number().int().nonnegative(),
  /** Trials in flight at once. */
  parallel: z.number().int().min(1).max(256),
  sandbox: z.enum(["bubblewrap", "none"]),
  limits: z.strictObject({
    /** Rounds of one call: the first answer and its repairs. */
    callRounds: z.number().int().min(1),
    /** Calls in a row without an admitted answer, after which the run suspends. */
    refusedCalls: z.number().int().min(1),
    /** Attempts of one measurement, interrupted ones included. */
    attempts: z.number().int().min(1),
    /** Turns of one long session. */
    sessionTurns: z.number().int().min(1),
    /** Wall limit of one command researcher's call. */
    callWallMs: z.number().int().positive(),
  }),
  /** Role → what a call reserves before each of its rounds: the most that one can use. `*` is everyone else's. */
  callReservations: z.record(
    z.string(),
    z.strictObject({ costUsd: z.number().nonnegative(), tokens: z.number().int().nonnegative(), computeMs: z.number().nonnegative() }),
  ),
  host: z.strictObject({
    platform: z.string(),
    cpus: z.number().int().positive(),
    cpuModel: z.string(),
    memoryBytes: z.number(),
    /** Models of the GPUs that stages may have; absent where no stage takes one. */
    gpus: z.array(z.string().max(200)).optional(),
    versions: z.record(z.string(), z.string()),
  }),
  /** What was known of the rule's own errors, here and on this machine, when the run started; null: never measured. */
  gate: gate.nullable().default(null),
});
export type RunConfiguration = z.infer<typeof runConfiguration>;

/** All researchers that a run may ask, each once. */
export function researchersIn({ researchers, alternates }: Pick<RunConfiguration, "researchers" | "alternates">): string[] {
  return [...new Set([...Object.values(researchers), ...alternates])];
}

/** What a call of this role reserves before each round, beside the trial that may come of it. */
export function callReservation({ callReservations }: Pick<RunConfiguration, "callReservations">, role: string): Omit<Amount, "trials"> {
  return callReservations[role] ?? callReservations["*"] ?? { costUsd: 0, tokens: 0, computeMs: 0 };
}

/** What a fork has of its own; all else of its configuration is its source's. */
export const forkConfiguration = runConfiguration.pick({
  run: true,
  researchers: true,
  alternates: true,
  researcherSettings: true,
  callReservations: true,
  budget: true,
  stop: true,
  seed: true,
  parallel: true,
  host: true,
});
export type ForkConfiguration = z.infer<typeof forkConfiguration>;
