import { z } from "zod";
import type { HookFiles } from "../adapters/hooks/hook-files.js";
import { RefusedError } from "../core/protocol/errors.js";

/** What an operator may want to hear of without looking: the keys of `on` in trialist.config.yaml. */
export const hookEvents = ["finished", "suspended", "best", "stalled"] as const;
export type HookEvent = (typeof hookEvents)[number];

/** Shell commands of the operator, by event. They run on the host: only the project's file and the command line name them. */
export type HookCommands = { readonly [event in HookEvent]?: string | undefined };

/** What the project's file says, or the command line. */
export interface HookWishes {
  readonly commands: HookCommands;
  /** Null: nothing is said. */
  readonly stalledAfterMs: number | null;
}

/** In force for a run. */
export interface HookSettings {
  readonly commands: HookCommands;
  readonly stalledAfterMs: number;
}

const defaultStalledAfterMs = 3_600_000;
/** A timer holds 31 bits of milliseconds. */
export const longestStalledAfterMs = 20 * 86_400_000;

const command = z.string().max(8000).optional();
export const hookCommands = z.strictObject(
  Object.fromEntries(hookEvents.map((event) => [event, command])) as Readonly<Record<HookEvent, typeof command>>,
);
const wishes = z.strictObject({ commands: hookCommands, stalledAfterMs: z.number().positive().max(longestStalledAfterMs).nullable() });

export const noHooks: HookWishes = { commands: {}, stalledAfterMs: null };

/** Keeps what the command line says beside what it said before, so that a detached or resumed run has it. */
export function keepGiven(files: HookFiles, given: HookWishes): void {
  const before = readGiven(files);
  const after = { commands: { ...before.commands, ...given.commands }, stalledAfterMs: given.stalledAfterMs ?? before.stalledAfterMs };
  if (JSON.stringify(after) !== JSON.stringify(before)) files.writeGiven(after);
}

/** The command line goes before the project's file; an empty command there takes the file's away. */
export function settingsInForce(files: HookFiles, configured: HookWishes): HookSettings {
  const given = readGiven(files);
  const all = { ...configured.commands, ...given.commands };
  return {
    commands: Object.fromEntries(Object.entries(all).filter(([, line]) => line !== undefined && line.trim() !== "")),
    stalledAfterMs: given.stalledAfterMs ?? configured.stalledAfterMs ?? defaultStalledAfterMs,
  };
}

function readGiven(files: HookFiles): HookWishes {
  try {
    return wishes.parse(files.readGiven() ?? noHooks);
  } catch (cause) {
    throw new RefusedError(
      {
        expected: "the hooks that were given on the command line",
        found: "another content",
        where: files.given,
        todo: "Remove that file, then give them again with `trialist resume RUN --on EVENT=COMMAND`.",
      },
      { cause },
    );
  }
}
