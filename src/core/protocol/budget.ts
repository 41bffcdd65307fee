import { z } from "zod";

/** Caps of a run; null: no cap. What nobody capped is still counted. */
export const budgetLimits = z.strictObject({
  /** Searched trials; the baseline, references, confirmations and re-measurements use none. */
  trials: z.number().int().positive().nullable(),
  /** US dollars, role calls. */
  costUsd: z.number().positive().nullable(),
  /** Tokens in and out, role calls. */
  tokens: z.number().int().positive().nullable(),
  /** CPU-milliseconds of stages and of command researchers. */
  computeMs: z.number().positive().nullable(),
  /** Active wall-clock milliseconds: pauses and dead time do not count. */
  wallMs: z.number().positive().nullable(),
});
export type BudgetLimits = z.infer<typeof budgetLimits>;

/** An amount of what dispatching something may use at worst, or has used. */
export const amount = z.strictObject({
  trials: z.number().nonnegative(),
  costUsd: z.number().nonnegative(),
  tokens: z.number().nonnegative(),
  computeMs: z.number().nonnegative(),
});
export type Amount = z.infer<typeof amount>;

export const nothing: Amount = { trials: 0, costUsd: 0, tokens: 0, computeMs: 0 };

/** Spent for good, and reserved by what is in flight. Mutable: owned by the run's state. */
export interface BudgetAccount {
  spent: { -readonly [K in keyof Amount]: number };
  reserved: { -readonly [K in keyof Amount]: number };
}

export function openAccount(): BudgetAccount {
  return { spent: { ...nothing }, reserved: { ...nothing } };
}

const dimensions = ["trials", "costUsd", "tokens", "computeMs"] as const;
export type BudgetDimension = (typeof dimensions)[number];

/** The first cap that `wanted` on top of what is spent and reserved would pass; null when it fits. */
export function exceeds(account: BudgetAccount, limits: BudgetLimits, wanted: Amount): BudgetDimension | null {
  for (const dimension of dimensions) {
    const cap = limits[dimension];
    if (cap === null || wanted[dimension] <= 0) continue;
    // A sum of many small decimals may pass a cap by rounding alone; a millionth of a millionth is no overrun.
    if (account.spent[dimension] + account.reserved[dimension] + wanted[dimension] > cap * (1 + 1e-12)) return dimension;
  }
  return null;
}

export function reserve(account: BudgetAccount, wanted: Amount): void {
  for (const dimension of dimensions) account.reserved[dimension] += wanted[dimension];
}

/** Frees a reservation and books what was used, which is never more than was reserved. */
export function settle(account: BudgetAccount, reserved: Amount, used: Amount): void {
  for (const dimension of dimensions) {
    account.reserved[dimension] = Math.max(0, account.reserved[dimension] - reserved[dimension]);
    account.spent[dimension] += used[dimension];
  }
}
