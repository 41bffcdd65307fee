import { z } from "zod";

/**
 * What a role call's answer has to be. proposal: a plan with its candidate. plan: a commitment alone, whose candidate
 * somebody else builds. candidate: the realization of an admitted plan. knowledge: a document that is committed once.
 */
export const expected = z.enum(["proposal", "plan", "candidate", "knowledge"]);
export type Expected = z.infer<typeof expected>;
