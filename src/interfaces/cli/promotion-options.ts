import type { Promotion } from "../../core/protocol/environment.js";
import { type CommandInput, textOption } from "./command.js";
import { UsageError } from "./usage-error.js";

/** The rule that `--rule` names; undefined without it. @throws UsageError for a rule that is none */
export function promotionRule(options: CommandInput["options"]): Promotion["rule"] | undefined {
  const rule = textOption(options, "rule");
  if (rule === undefined || rule === "any" || rule === "threshold" || rule === "confirmed") return rule;
  throw new UsageError(`--rule expects any, threshold or confirmed, ${rule} was given`);
}
