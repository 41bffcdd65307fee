import type { ProposalView } from "../../core/harness/views.js";
import type { Digest } from "../../core/protocol/canonical.js";
import { digestOfValue } from "../../core/protocol/canonical.js";
import type { Environment, Parameter } from "../../core/protocol/environment.js";
import { readParameters } from "../../core/protocol/parameters.js";
import { type Blobs, manifestAt } from "./role.js";

/** What an optimizer is told: the declared numbers as the base has them, and what other values of them gave. */
export interface ParameterDocument {
  /** `text`: the number as it is written in the base's file. */
  readonly declared: readonly (Parameter & { readonly text: string; readonly value: number })[];
  /** Valid trials of the same program, oldest first: all files equal but for the declared numbers. */
  readonly observations: readonly { readonly trial: string; readonly values: Readonly<Record<string, number>>; readonly score: number }[];
}

/** Null where the environment declares none, or the base's files have not all of them any more. */
export function parameterDocument(view: ProposalView, environment: Environment, blobs: Blobs): ParameterDocument | null {
  const { parameters } = environment.surface;
  if (parameters === undefined) return null;
  const base = tuned(parameters, view.base.candidate.blob, blobs);
  if (base === null) return null;
  const declared = parameters.map((parameter) => {
    const { text, value } = base.values[parameter.name] ?? { text: "", value: Number.NaN };
    return { ...parameter, text, value };
  });
  const observations = (view.observations ?? []).flatMap(({ trial, candidate, score }) => {
    const other = tuned(parameters, candidate.blob, blobs);
    if (other === null || other.program !== base.program) return [];
    return [{ trial, values: Object.fromEntries(Object.entries(other.values).map(([name, { value }]) => [name, value])), score }];
  });
  return { declared, observations };
}

function tuned(parameters: readonly Parameter[], candidate: Digest, blobs: Blobs) {
  const decoder = new TextDecoder();
  const named = new Set(parameters.map(({ file }) => file));
  const { files } = manifestAt(candidate, blobs);
  const texts = new Map(files.filter(({ path }) => named.has(path)).map(({ path, digest }) => [path, decoder.decode(blobs.blob(digest))]));
  const read = readParameters(parameters, texts);
  if (read === null) return null;
  const others = files.filter(({ path }) => !named.has(path)).map(({ path, digest }) => [path, digest]);
  return { values: read.values, program: digestOfValue([others, [...read.blanked]]) };
}
