import { oneLine } from "./hostile-text.js";
import { count, duration, money, plural } from "./numbers.js";
import type { RunSummary } from "./summary-schema.js";

type Continued = Pick<RunSummary, "forkedFrom" | "extensions">;
type Line = readonly [label: string, text: string];

/** Where the run came from and how it went on after an end: what happened, and the rest of the sentence. */
export function continuationTexts({ forkedFrom, extensions }: Continued): Line[] {
  const extended = extensions.map(
    ({ afterTrials, reason }): Line => ["Extended", `after ${plural(afterTrials, "trial")}: ${oneLine(reason, 200)}`],
  );
  if (forkedFrom === null) return extended;
  const inherited = `inherited, and counted by the caps: ${inheritedText(forkedFrom.inherited)}`;
  return [["Forked", `${placeOf(forkedFrom)}: ${oneLine(forkedFrom.reason, 200)}; ${inherited}`], ...extended];
}

/** `from night at t12 (its event 345)`. */
export function placeOf({ run, trial, sequence, afterTrials }: Omit<NonNullable<RunSummary["forkedFrom"]>, "inherited">): string {
  return `from ${run} ${trial === null ? `after ${plural(afterTrials, "trial")}` : `at ${trial}`} (its event ${sequence})`;
}

function inheritedText({ trials, costUsd, tokens, computeMs, activeMs }: NonNullable<RunSummary["forkedFrom"]>["inherited"]): string {
  const parts = [plural(trials, "trial"), `${duration(activeMs)} active`, `${duration(computeMs)} CPU`];
  if (costUsd > 0) parts.push(money(costUsd));
  if (tokens > 0) parts.push(`${count(tokens)} tokens`);
  return parts.join(", ");
}

/** A search that goes on after a look at held-out data has selected after that look: its held-out score says less. */
export function lookWarnings({ forkedFrom, extensions }: Continued): string[] {
  const forked = forkedFrom === null ? [] : [{ what: "FORKED", ...forkedFrom }];
  return [...forked, ...extensions.map((each) => ({ what: "EXTENDED", ...each }))].flatMap(({ what, afterTrials, afterHeldoutLook }) =>
    afterHeldoutLook === null
      ? []
      : [
          `${what} AFTER A LOOK at held-out data, after ${plural(afterTrials, "trial")} (${oneLine(afterHeldoutLook, 200)}): a held-out score of what came later is not untouched.`,
        ],
  );
}
