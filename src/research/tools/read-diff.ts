import { z } from "zod";
import { diffCandidates } from "../report/candidate-diff.js";
import { manifestAt } from "../roles/role.js";
import { namedTrial } from "./named-trial.js";
import { tool } from "./tool.js";

const shownCharacters = 40_000;

export const readDiff = tool({
  name: "read_diff",
  description: "How a trial's candidate, or your working copy, differs from another trial's candidate.",
  roles: ["researcher", "reviewer"],
  input: z.object({
    from: z.string().describe("the trial to compare with, such as t0"),
    to: z.string().optional().describe("the trial that differs; without it your working copy"),
  }),
  run(context, { from, to }) {
    const { blobs, workbench } = context;
    const before = manifestAt(namedTrial(context, from).candidate.blob, blobs);
    const after = to === undefined ? workbench.snapshot().manifest : manifestAt(namedTrial(context, to).candidate.blob, blobs);
    const changes = diffCandidates(before, after, (digest) => blobs.blob(digest));
    return changes.map(({ path, kind, patch, note }) => ({ path, kind, patch: patch?.slice(0, shownCharacters) ?? null, note }));
  },
});
