import { z } from "zod";
import { manifestAt } from "../roles/role.js";
import { namedTrial } from "./named-trial.js";
import { ToolProblem, tool } from "./tool.js";

/** Characters that one call shows. */
const shownCharacters = 40_000;

export const readFiles = tool({
  name: "read_files",
  description: "The files of your working copy, or of a trial's candidate: the list, or one file's text from an offset.",
  roles: ["researcher", "reviewer"],
  input: z.object({
    trial: z.string().optional().describe("whose candidate; without it your working copy"),
    path: z.string().optional().describe("one file; without it the list"),
    offset: z.number().int().min(0).optional().describe("characters to skip"),
  }),
  run(context, { trial, path, offset = 0 }) {
    const { blobs, workbench } = context;
    const manifest = trial === undefined ? null : manifestAt(namedTrial(context, trial).candidate.blob, blobs);
    if (path === undefined) return { files: manifest?.files.map((file) => ({ path: file.path, bytes: file.bytes })) ?? workbench.files() };
    const digest = manifest?.files.find((file) => file.path === path)?.digest;
    const text = manifest === null ? workbench.text(path) : digest === undefined ? null : new TextDecoder().decode(blobs.blob(digest));
    if (text === null) throw new ToolProblem(`there is no file ${JSON.stringify(path)}`);
    const shown = text.slice(offset, offset + shownCharacters);
    return { path, text: shown, nextOffset: offset + shown.length < text.length ? offset + shown.length : null };
  },
});
