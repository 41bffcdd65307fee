import { oneLine } from "./hostile-text.js";
import { plural } from "./numbers.js";
import type { RunSummary } from "./summary-schema.js";

type Continued = Pick<RunSummary, "extensions">;

/** How the run went on after its end, one line each. */
export function continuationTexts({ extensions }: Continued): string[] {
  return extensions.map(({ afterTrials, reason }) => `after ${plural(afterTrials, "trial")}: ${oneLine(reason, 200)}`);
}

/** A search that goes on after a look at held-out data has selected after that look: its held-out score says less. */
export function lookWarnings({ extensions }: Continued): string[] {
  return extensions.flatMap(({ afterTrials, afterHeldoutLook }) =>
    afterHeldoutLook === null
      ? []
      : [
          `EXTENDED AFTER A LOOK at held-out data, after ${plural(afterTrials, "trial")} (${oneLine(afterHeldoutLook, 200)}): a held-out score of what came later is not untouched.`,
        ],
  );
}
