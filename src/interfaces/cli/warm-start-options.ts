import type { Command } from "commander";
import type { WarmStart } from "../../app/warm-start.js";
import { type CommandInput, numberOption, textOption, wholeNumber } from "./command.js";
import { UsageError } from "./usage-error.js";

/** Keeps that are taken where nobody says how many. */
const usual = 3;

export function describeWarmStartOptions(program: Command): void {
  program
    .option("--warm-start <run>", "begin with the best keeps of another run, or RUN:t3,t7; measured here from the start, a trial each")
    .option("--warm-start-top <n>", `how many keeps of it (default ${usual})`, wholeNumber("--warm-start-top"));
}

/** @throws UsageError */
export function warmStartRequest(options: CommandInput["options"]): { readonly warmStart?: WarmStart } {
  const given = textOption(options, "warmStart");
  const top = numberOption(options, "warmStartTop");
  if (given === undefined && top === undefined) return {};
  if (given === undefined) throw new UsageError("--warm-start-top goes with --warm-start RUN");
  const [, run = "", named] = /^([^:]*)(?::(.*))?$/s.exec(given) ?? [];
  if (named === undefined) {
    if (top === 0) throw new UsageError("--warm-start-top expects 1 or more");
    return { warmStart: { run, trials: null, most: top ?? usual } };
  }
  const trials = named.split(",").map((each) => each.trim());
  if (trials.some((each) => !/^[tr](0|[1-9]\d{0,8})$/.test(each)))
    throw new UsageError(`--warm-start expects RUN, or RUN:t3,t7; ${JSON.stringify(given)} was given`);
  if (top !== undefined) throw new UsageError("--warm-start-top goes with a run alone: the trials are named");
  return { warmStart: { run, trials, most: trials.length } };
}
