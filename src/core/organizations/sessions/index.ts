import { z } from "zod";
import type { RunState } from "../../harness/state.js";
import { freshBase, isHeld } from "../../harness/steering.js";
import { externalResearcher } from "../../protocol/ids.js";
import type { Organization } from "../organization.js";

const configuration = z.strictObject({
  /** Long sessions that are kept open side by side; 0: everything comes from outside. */
  sessions: z.number().int().min(0).max(64).default(1),
  /** Sessions that ended without a submission, one after the other, after which the run ends. */
  patience: z.number().int().min(1).default(3),
});
export type SessionsConfiguration = z.infer<typeof configuration>;

interface SessionsFold {
  readonly configuration: SessionsConfiguration;
  /** Session → trials that it handed in. */
  open: Record<string, number>;
  fruitless: number;
  /** Sessions that were cut off, in order: the next ones go on where they were. */
  interrupted: { readonly session: string; readonly base: string }[];
  /** Session → where it stands: its base, or the last trial that it handed in. */
  places: Record<string, string>;
}

/**
 * Generalists who work on their own: each session reads, edits and submits as it likes; a session that ends is followed
 * by another one, from the best so far, and one that was cut off by one from where it stood.
 */
export const sessions: Organization<SessionsFold, SessionsConfiguration> = {
  name: "sessions",
  roles: ["generalist"],
  asks: "sessions",
  isServed: (given) => given.sessions === 0,
  hasOwnBaseline: false,
  duplicates: "refuse",
  configure: (given) => configuration.parse(given),
  initial: (given) => ({ configuration: given, open: {}, fruitless: 0, interrupted: [], places: {} }),
  evolve(fold, event, state) {
    switch (event.type) {
      case "session.opened":
        // What comes from outside comes and goes as it likes.
        if (event.data.researcher === externalResearcher) return;
        fold.open[event.data.session] = 0;
        fold.places[event.data.session] = event.data.base;
        fold.interrupted = fold.interrupted.filter(({ session }) => session !== event.data.reopens);
        return;
      case "session.submitted":
        if (fold.open[event.data.session] === undefined) return;
        fold.open[event.data.session] = (fold.open[event.data.session] ?? 0) + 1;
        fold.places[event.data.session] = newestTrial(state);
        return;
      case "session.closed":
        if (fold.open[event.data.session] === undefined) return;
        fold.fruitless = fold.open[event.data.session] === 0 ? fold.fruitless + 1 : 0;
        return forget(fold, event.data.session);
      case "session.interrupted":
        if (fold.open[event.data.session] === undefined) return;
        fold.interrupted.push({ session: event.data.session, base: fold.places[event.data.session] ?? "t0" });
        return forget(fold, event.data.session);
      case "run.extended":
      case "run.forked":
        fold.fruitless = 0;
        return;
      default:
        return;
    }
  },
  next(fold, state) {
    if (Object.keys(fold.open).length >= fold.configuration.sessions) return { kind: "wait" };
    if (fold.fruitless >= fold.configuration.patience)
      return { kind: "finish", reason: `${fold.fruitless} sessions in a row handed nothing in` };
    const [interrupted] = fold.interrupted;
    const place = interrupted === undefined ? undefined : state.trials[interrupted.base];
    const base = place === undefined || place.retracted || isHeld(state, place.id) ? freshBase(state) : place.id;
    return { kind: "session", role: "generalist", base, reopens: interrupted?.session ?? null };
  },
};

function forget(fold: SessionsFold, session: string): void {
  delete fold.open[session];
  delete fold.places[session];
}

/** The trial of a submission is admitted in the same decision, before the session is told. */
function newestTrial(state: RunState): string {
  return `t${state.counters.trial}`;
}
