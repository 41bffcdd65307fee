import type { Draw } from "../harness/draw.js";
import type { RunState } from "../harness/state.js";
import type { ViewName } from "../harness/views.js";
import type { StoredRunEvent, Violation } from "../protocol/events.js";
import type { Expected } from "../protocol/expected.js";

/** What an organization wants next. */
export type Move =
  | {
      readonly kind: "call";
      readonly role: string;
      /** The trial whose candidate the proposal starts from. */
      readonly base: string;
      /** Frozen as the plan's comparator. */
      readonly comparator: string;
      /** What the answer has to be; default `proposal`, a plan with its candidate in one. */
      readonly expects?: Expected;
      /** The plan that a `candidate` realizes, or that `knowledge` is about. */
      readonly plan?: string;
      /** Which view the role gets; default `proposal`. */
      readonly view?: ViewName;
      /** What the organization wants to find again in its fold: small, flat. */
      readonly detail: Readonly<Record<string, string | number | null>>;
    }
  /** A long session that reads live state and submits on its own. */
  | { readonly kind: "session"; readonly role: string; readonly base: string; readonly reopens: string | null }
  /** A deadline or a grace period, in active time: recorded, never a bare timer. `evolve` sees it fire. */
  | { readonly kind: "schedule"; readonly wakeUp: string; readonly afterActiveMs: number }
  /** Nothing until something that is open ends. */
  | { readonly kind: "wait" }
  | { readonly kind: "finish"; readonly reason: string };

/**
 * A pure policy that says what happens next. It keeps a fold of its own, so that a decision costs the same at trial 50
 * and at trial 5,000; it draws through `draw`, whose value depends on the run's seed, a name and an index alone.
 */
export interface Organization<Fold, Configuration> {
  readonly name: string;
  /** Checks and completes the configuration. @throws z.ZodError */
  configure(given: unknown): Configuration;
  initial(configuration: Configuration): Fold;
  /** Called after the run's own fold took the event in; may mutate and return `fold`. */
  evolve(fold: Fold, event: StoredRunEvent, state: RunState): void;
  /** Called when there is room for one more trial. */
  next(fold: Fold, state: RunState, draw: Draw): Move;
  /** Rules of admission beyond the surface's: what a commitment must hold, which trials may be a base. */
  admit?(
    fold: Fold,
    state: RunState,
    proposed: { readonly base: string; readonly commitment: Readonly<Record<string, unknown>> },
  ): readonly Violation[];
  /** Whether a candidate that was tried before is refused (`repair` shows it back) or measured again. */
  readonly duplicates: "refuse" | "measure";
  /** The worker roles that the organization calls. */
  readonly roles: readonly string[];
  /** What its moves ask for: role calls, long sessions, or nothing, where all that it measures is known beforehand. */
  readonly asks: "calls" | "sessions" | "nothing";
  /** Whether under this configuration all trials come from outside: nothing happens unless somebody serves the run. */
  isServed(configuration: Configuration): boolean;
  /** Whether the baseline is made for the run, so that the folder of its environment may hold any of its candidates. */
  readonly hasOwnBaseline: boolean;
}
