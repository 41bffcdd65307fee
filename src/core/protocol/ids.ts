import { z } from "zod";

/** Ids count up inside a run. `t0` is the baseline, `t1…` are searched trials, `r1…` are reference rows. */
export const trialId = z.string().regex(/^[tr](0|[1-9]\d{0,8})$/);
export const planId = z.string().regex(/^p[1-9]\d{0,8}$/);
export const callId = z.string().regex(/^c[1-9]\d{0,8}$/);
export const sessionId = z.string().regex(/^s[1-9]\d{0,8}$/);
export const measurementId = z.string().regex(/^m[1-9]\d{0,8}$/);
/** An entry of the queue: a candidate that waits for its admission. */
export const queueEntryId = z.string().regex(/^q[1-9]\d{0,8}$/);
export const wakeUpId = z.string().regex(/^[a-z][a-z0-9-]{0,39}$/);

/** Researcher of a session that somebody outside drives: nothing of it is due here. */
export const externalResearcher = "mcp";

/** Researcher of a run that asks nobody: all that it measures is in its queue. */
export const noResearcher = "none";

/** Run names become folder names: letters, digits, `.`, `_`, `-`, never starting with a dot. */
export const runName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);

/** A named blob. Every digest in an event has this shape, so that verification finds them all. */
export const blobReference = z.strictObject({ blob: z.string().length(64), bytes: z.number().int().nonnegative() });
export type BlobReference = z.infer<typeof blobReference>;

/** A blob that is a candidate's manifest: its files are blobs too. */
export const manifestReference = z.strictObject({
  blob: z.string().length(64),
  bytes: z.number().int().nonnegative(),
  manifest: z.literal(true),
});
export type ManifestReference = z.infer<typeof manifestReference>;
