import { Option } from "commander";
import type { StopRule } from "../../core/protocol/run.js";
import { type CommandInput, numberOption } from "./command.js";
import { UsageError } from "./usage-error.js";

/** Trials that the chance is about. */
const horizon = 10;
const usual = 0.05;

/** `--until-saturated`, with a probability or without; `none` lifts it. */
export function saturationOption(): Option {
  return new Option(
    "--until-saturated [probability]",
    `end once the chance that ${horizon} more trials bring a keep is this small (default: ${usual})`,
  )
    .preset(String(usual))
    .argParser(probability);
}

/** @throws UsageError */
function probability(text: string): number | "none" {
  if (text === "none") return text;
  const value = Number(text);
  if (text.trim() !== "" && value > 0 && value < 1) return value;
  throw new UsageError(`--until-saturated expects a probability between 0 and 1, such as ${usual}; ${JSON.stringify(text)} was given`);
}

/** The rule that `--until-saturated` asks for: null for none, undefined where it was not given. */
export function saturationRule(options: CommandInput["options"]): StopRule["saturation"] | undefined {
  if (options["untilSaturated"] === "none") return null;
  const given = numberOption(options, "untilSaturated");
  return given === undefined ? undefined : { probability: given, horizon };
}
