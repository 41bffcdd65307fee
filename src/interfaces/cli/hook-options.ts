import type { Command } from "commander";
import { type HookCommands, type HookEvent, type HookWishes, hookEvents, longestStalledAfterMs } from "../../app/hooks.js";
import { type CommandInput, numberOption } from "./command.js";
import { durationOption } from "./duration.js";
import { UsageError } from "./usage-error.js";

/** Commands of the operator that hear of what happens in a run. */
export function describeHookOptions(program: Command): void {
  program
    .option(
      "--on <event=command>",
      `run a shell command when the run is ${hookEvents.join(", ")}, with one JSON document on standard input; may be given again`,
      hook,
    )
    .option("--stalled-after <duration>", "with --on stalled=…: so long without the end of a trial (default: 1h)", stalledAfter);
}

function hook(text: string, before: HookCommands = {}): HookCommands {
  const place = text.indexOf("=");
  const event = text.slice(0, Math.max(0, place));
  if (!isHookEvent(event))
    throw new UsageError(
      `--on expects EVENT=COMMAND with one of ${hookEvents.join(", ")}, such as finished='mail -s done me'; ${JSON.stringify(text)} was given`,
    );
  return { ...before, [event]: text.slice(place + 1) };
}

function isHookEvent(text: string): text is HookEvent {
  return (hookEvents as readonly string[]).includes(text);
}

function stalledAfter(text: string): number {
  const value = durationOption("--stalled-after")(text);
  if (value > longestStalledAfterMs) throw new UsageError(`--stalled-after expects at most 20d; ${JSON.stringify(text)} was given`);
  return value;
}

/** Null when nothing was given. */
export function hookWishes(options: CommandInput["options"]): HookWishes | null {
  const commands = options["on"] as HookCommands | undefined;
  const stalledAfterMs = numberOption(options, "stalledAfter") ?? null;
  return commands === undefined && stalledAfterMs === null ? null : { commands: commands ?? {}, stalledAfterMs };
}
