import type { Command } from "commander";
import type { BudgetChange, CapChange } from "../../app/budget-change.js";
import { anyNumber, type CommandInput, positiveNumber, textOption, wholeNumber } from "./command.js";
import { durationOption } from "./duration.js";
import { saturationOption, saturationRule } from "./saturation-option.js";
import { UsageError } from "./usage-error.js";

/** What a search that goes on can be told anew: caps as totals, as additions, or lifted; and when to stop. */
export function describeContinuationOptions(program: Command): void {
  const more = "+N: N more than is spent; none: no cap";
  program
    .option("--max-trials <n>", `cap of searched trials, all of them counted (${more})`, cap("--max-trials", atLeastOne))
    .option("--max-time <duration>", "cap of active time, all of it counted; likewise", cap("--max-time", durationOption))
    .option("--max-compute <duration>", "cap of CPU time; likewise", cap("--max-compute", durationOption))
    .option("--max-cost <dollars>", "cap of what language models cost; likewise", cap("--max-cost", positiveNumber))
    .option("--max-tokens <n>", "cap of language models' tokens; likewise", cap("--max-tokens", atLeastOne))
    .option("--target <value>", "end once the best has this value of the first metric; none: no target", orNone("--target", anyNumber))
    .option("--patience <n>", "end after so many trials in a row without a keep, from here on; none", orNone("--patience", atLeastOne))
    .addOption(saturationOption())
    .option("--after-heldout-look <reason>", "why to go on although somebody has looked at held-out data; recorded", saidSomething)
    .option("--frozen", "go on with the frozen environment although its files changed since", false)
    .option("--detach", "let it go on in a process of its own, which outlives this terminal", false);
}

function atLeastOne(name: string): (text: string) => number {
  return (text) => {
    const value = wholeNumber(name)(text);
    if (value < 1) throw new UsageError(`${name} expects a whole number of 1 or more, ${JSON.stringify(text)} was given`);
    return value;
  };
}

function saidSomething(text: string): string {
  if (text.trim() !== "") return text;
  throw new UsageError("--after-heldout-look expects a few words, which are recorded; nothing was given");
}

type ParserOf = (name: string) => (text: string) => unknown;

function orNone(name: string, parserOf: ParserOf): (text: string) => unknown {
  return (text) => (text === "none" ? "none" : parserOf(name)(text));
}

function cap(name: string, parserOf: (name: string) => (text: string) => number): (text: string) => CapChange {
  return (text) => {
    if (text === "none") return "none";
    const value = parserOf(name)(text.replace(/^\+/, ""));
    return text.startsWith("+") ? { more: value } : { total: value };
  };
}

export function budgetChange({ options }: CommandInput): BudgetChange {
  const capOf = (name: string): CapChange | undefined => options[name] as CapChange | undefined;
  const numberOrNone = (name: string): number | null | undefined =>
    options[name] === "none" ? null : (options[name] as number | undefined);
  return {
    caps: {
      trials: capOf("maxTrials"),
      wallMs: capOf("maxTime"),
      computeMs: capOf("maxCompute"),
      costUsd: capOf("maxCost"),
      tokens: capOf("maxTokens"),
    },
    stop: {
      target: numberOrNone("target"),
      patience: numberOrNone("patience"),
      saturation: saturationRule(options),
    },
  };
}

export function afterHeldoutLook({ options }: CommandInput): string | null {
  return textOption(options, "afterHeldoutLook") ?? null;
}
