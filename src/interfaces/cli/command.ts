import type { Command } from "commander";
import type { Terminal } from "./terminal.js";
import { UsageError } from "./usage-error.js";

/** One command of the command line: a file in `commands/`, a line in `registry.ts`. */
export interface CliCommand {
  /** Adds arguments and options; an example goes into `addHelpText`. */
  describe(command: Command): void;
  /** Returns the exit code. Errors are printed by `main`. */
  run(input: CommandInput): Promise<number>;
}

export interface CommandInput {
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
  /** Folder that the project is in. */
  readonly folder: string;
  readonly terminal: Terminal;
}

/** Exit codes, as documented in `trialist --help`. */
export const exitCodes = {
  ok: 0,
  /** A defect of trialist: please report it. */
  unexpected: 1,
  /** The request was wrong or not allowed; nothing was changed. */
  refused: 2,
  /** The machine lacks something: `trialist doctor`. */
  infrastructure: 3,
  /** The run stopped and can be resumed. */
  suspended: 4,
  /** A record or an environment does not check out. */
  corrupt: 5,
  /** A packet's claim does not hold here. */
  notReproduced: 6,
  /** A packet's claim can be neither borne out nor refuted here. */
  undecided: 7,
  /** Ctrl-C: everything is saved. */
  interrupted: 130,
} as const;

/** A positive whole number from the command line. @throws UsageError with the option's name */
export function wholeNumber(name: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < 0) throw new UsageError(`${name} expects a whole number, ${JSON.stringify(text)} was given`);
    return value;
  };
}

/** A number from the command line. @throws UsageError with the option's name */
export function anyNumber(name: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value)) throw new UsageError(`${name} expects a number, ${JSON.stringify(text)} was given`);
    return value;
  };
}

/** A number above 0 from the command line. @throws UsageError with the option's name */
export function positiveNumber(name: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!Number.isFinite(value) || value <= 0) throw new UsageError(`${name} expects a number above 0, ${JSON.stringify(text)} was given`);
    return value;
  };
}

/** A reason that is recorded. @throws UsageError when it says nothing */
export function reasonOption(text: string): string {
  if (text.trim() === "") throw new UsageError("--reason expects a few words, which are recorded; nothing was given");
  return text;
}

/** An option's text, or undefined. */
export function textOption(options: CommandInput["options"], name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}

export function numberOption(options: CommandInput["options"], name: string): number | undefined {
  const value = options[name];
  return typeof value === "number" ? value : undefined;
}
