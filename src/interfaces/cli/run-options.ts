import { resolve } from "node:path";
import type { Command } from "commander";
import type { createRun } from "../../app/create-run.js";
import type { BudgetLimits } from "../../core/protocol/budget.js";
import { anyNumber, type CommandInput, numberOption, positiveNumber, textOption, wholeNumber } from "./command.js";
import { durationOption } from "./duration.js";
import { describeHookOptions, hookWishes } from "./hook-options.js";
import { promotionRule } from "./promotion-options.js";
import { saturationOption, saturationRule } from "./saturation-option.js";
import { UsageError } from "./usage-error.js";

type RunRequest = Parameters<typeof createRun>[2];

/** What every new run can be told, whoever proposes: name, caps, promotion, seed, sandbox. */
export function describeRunOptions(program: Command): void {
  program
    .option("--name <name>", "name of the run (default: the environment's, with a number)")
    .option("--max-trials <n>", "cap of searched trials", wholeNumber("--max-trials"), 20)
    .option("--max-time <duration>", "cap of active time, such as 30min or 8h", durationOption("--max-time"))
    .option("--max-compute <duration>", "cap of CPU time of all stages, such as 2h", durationOption("--max-compute"))
    .option("--max-cost <dollars>", "cap of what language models cost, in US dollars", positiveNumber("--max-cost"))
    .option("--max-tokens <n>", "cap of language models' tokens, in and out", positiveNumber("--max-tokens"))
    .option("--target <value>", "end once the best has this value of the first metric", anyNumber("--target"))
    .option("--patience <n>", "end after so many trials in a row without a keep", wholeNumber("--patience"))
    .addOption(saturationOption())
    .option("--rule <rule>", "promotion: any, threshold or confirmed (default: the environment's)")
    .option("--confirmations <n>", "fresh-seed pairs per confirmation", wholeNumber("--confirmations"))
    .option("--seed <n>", "seed of researchers and of the policy's draws", wholeNumber("--seed"), 1)
    .option("--parallel <n>", "trials at once", wholeNumber("--parallel"), 1)
    .option("--recalibrate", "measure the baseline's repetitions anew, although this machine has them", false)
    .option("--calibration-age <duration>", "oldest calibration that is taken over (default: 7d)", durationOption("--calibration-age"))
    .option("--sandbox <kind>", "bubblewrap, or none: candidates then run with your rights, and every result says so", "bubblewrap");
  describeHookOptions(program);
}

/** @throws UsageError for an option that does not fit */
export function runRequest(input: CommandInput): Omit<RunRequest, "organization" | "researcher"> {
  const { options } = input;
  const sandbox = textOption(options, "sandbox");
  if (sandbox !== "bubblewrap" && sandbox !== "none") throw new UsageError(`--sandbox expects bubblewrap or none, ${sandbox} was given`);
  return {
    environmentFolder: resolve(input.folder, input.args[0] ?? "."),
    name: textOption(options, "name") ?? null,
    budget: budgetOf(options),
    promotion: promotionOf(options),
    stop: {
      target: numberOption(options, "target") ?? null,
      patience: numberOption(options, "patience") ?? null,
      saturation: saturationRule(options) ?? null,
    },
    seed: numberOption(options, "seed") ?? 1,
    parallel: numberOption(options, "parallel") ?? 1,
    sandbox,
    hooks: hookWishes(options),
    reuseCalibration: options["recalibrate"] === true ? null : { maxAgeMs: numberOption(options, "calibrationAge") ?? oldestCalibrationMs },
  };
}

const oldestCalibrationMs = 7 * 24 * 3_600_000;

function budgetOf(options: CommandInput["options"]): BudgetLimits {
  return {
    trials: numberOption(options, "maxTrials") ?? null,
    costUsd: numberOption(options, "maxCost") ?? null,
    tokens: numberOption(options, "maxTokens") ?? null,
    computeMs: numberOption(options, "maxCompute") ?? null,
    wallMs: numberOption(options, "maxTime") ?? null,
  };
}

function promotionOf(options: CommandInput["options"]): RunRequest["promotion"] {
  const rule = promotionRule(options);
  const confirmations = numberOption(options, "confirmations");
  return { ...(rule === undefined ? {} : { rule }), ...(confirmations === undefined ? {} : { confirmations }) };
}
