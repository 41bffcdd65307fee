import { isPlainPath, readProposal, violation } from "../../core/harness/admission.js";
import type { ProposalView } from "../../core/harness/views.js";
import { canonicalJson, type Digest } from "../../core/protocol/canonical.js";
import type { Answer } from "../../core/protocol/commands.js";
import type { Environment } from "../../core/protocol/environment.js";
import type { Violation } from "../../core/protocol/events.js";
import type { BlobReference } from "../../core/protocol/ids.js";
import { changedManifest, newTexts } from "./candidate-change.js";
import { parameterDocument } from "./parameters.js";
import { type ProposalDocument, proposalPrompt, proposalPromptBytes } from "./proposal-prompt.js";
import { type Blobs, manifestAt, type Role } from "./role.js";
import { breaksOff, longestAnswer, plainSentence, readJson } from "./tolerant-json.js";

const decoder = new TextDecoder();

/** Characters of a failed stage's output that a role is shown: the beginning and the end. */
const shownOutput = { whole: 5100, each: 2500 };

/** A role that proposes a change of files, a plan with its candidate in one. */
function proposer(name: string, task: string): Role<ProposalView, ProposalDocument> {
  return {
    name,
    promptBytes: proposalPromptBytes,
    document: proposalDocument,
    prompt: (document, room) => proposalPrompt(task, document, room),
    read: readAnswer,
  };
}

const everybody = `You improve a program by experiments. Every change that you propose is run and measured in a sandbox, without network,
by a program that you cannot see or influence; only a better measurement counts.`;

export const draft = proposer(
  "draft",
  `${everybody} Your task now: a fresh solution. Take an approach that differs from what was tried, simple enough to work at once;
the files below show how a solution reads its inputs and writes its outputs.`,
);
export const debug = proposer(
  "debug",
  `${everybody} Your task now: the program below failed. Find the cause in its output, and mend it with the smallest change that keeps its idea.`,
);
export const improve = proposer(
  "improve",
  `${everybody} Your task now: one change that makes the program below better. Change one thing, so that its effect can be measured;
do not repeat what was tried without success.`,
);

function proposalDocument(view: ProposalView, environment: Environment, blobs: Blobs): ProposalDocument {
  const { base, failure } = view;
  const parameters = parameterDocument(view, environment, blobs);
  return {
    environment: {
      name: environment.name,
      description: environment.description,
      knowledge: environment.knowledge,
      metrics: environment.metrics.map(({ name, direction }) => ({ name, direction })),
      gates: environment.gates,
      editable: environment.surface.editable,
      maxBytes: environment.surface.maxBytes,
      limits: environment.stages
        .filter((stage) => stage.trust === "candidate")
        .map(({ name, limits: { wallMs, memoryBytes, cpus, gpus } }) => ({
          stage: name,
          wallMs,
          memoryBytes,
          cpus,
          ...(gpus === undefined ? {} : { gpus }),
        })),
    },
    base: {
      trial: base.trial,
      status: base.status,
      value: base.value,
      hypothesis: base.hypothesis,
      files: filesOf(base.candidate.blob, blobs),
    },
    failure:
      failure === null
        ? null
        : {
            status: failure.status,
            stage: failure.stage,
            reason: failure.reason,
            output: failure.output === null ? "" : shown(failure.output, blobs),
          },
    memory: view.memory,
    best: view.best,
    ...(parameters === null ? {} : { parameters }),
    // Views of an earlier build have none.
    notes: view.notes ?? [],
    steering: view.steering ?? { held: [], pinned: [] },
    trialsLeft: view.trialsLeft,
    activeMsLeft: view.activeMsLeft,
  };
}

function shown(output: { readonly stdout: BlobReference; readonly stderr: BlobReference }, blobs: Blobs): string {
  const text = [output.stdout, output.stderr].map((part) => decoder.decode(blobs.blob(part.blob))).join("\n");
  return text.length <= shownOutput.whole ? text : `${text.slice(0, shownOutput.each)}\n[…]\n${text.slice(-shownOutput.each)}`;
}

function filesOf(digest: Digest, blobs: Blobs): Record<string, string> {
  return Object.fromEntries(manifestAt(digest, blobs).files.map((file) => [file.path, decoder.decode(blobs.blob(file.digest))]));
}

function readAnswer(raw: Uint8Array, base: Digest, blobs: Blobs): Answer {
  const output = readJson(decoder.decode(raw), ["plan", "files", "edits"]);
  if (output === undefined) return unreadable(noJson(raw));
  const proposal = readProposal(output);
  if (!("edits" in proposal)) return unreadable(...proposal);
  const manifest = manifestAt(base, blobs);
  const edited = new Set([...proposal.files.keys(), ...proposal.edits.map(({ path }) => path)]);
  const outside = [...edited].filter((path) => !isPlainPath(path));
  if (outside.length > 0) return unreadable(...outside.map((path) => violation("path_outside", plainPaths, path)));
  const texts = newTexts(proposal, manifest, blobs);
  if (Array.isArray(texts)) return unreadable(...texts);
  const changed = changedManifest(manifest, texts, blobs);
  const bytes = new TextEncoder().encode(canonicalJson(changed));
  const candidate = { ...blobs.putBlob(bytes), manifest: true } as const;
  if (candidate.blob === base)
    return unreadable(violation("unchanged", `the files are the same as those of the trial it starts from`, null));
  const { respondsTo, expectedGain, commitment } = proposal;
  const hypothesis = plainSentence(proposal.hypothesis);
  if (hypothesis === "") return unreadable(violation("hypothesis_missing", "plan.hypothesis must be a text of a sentence or two", null));
  return { kind: "proposal", hypothesis, expectedGain, respondsTo, commitment, candidate, manifest: changed, edited: [...edited] };
}

const plainPaths = "a path must be relative, with forward slashes, without . or .. parts";

function unreadable(...violations: readonly Violation[]): Answer {
  return { kind: "unreadable", violations: violations.slice(0, 20) };
}

function noJson(raw: Uint8Array): Violation {
  if (raw.byteLength === 0) return violation("empty_answer", "the answer was empty: one JSON document must come", null);
  if (raw.byteLength > longestAnswer)
    return violation("too_long", `the answer holds ${raw.byteLength} bytes, at most ${longestAnswer} are read`, null);
  if (breaksOff(decoder.decode(raw)))
    return violation("not_json", "the JSON document breaks off before its end: answer with a shorter one, whole", null);
  return violation("not_json", "the answer must be one JSON document and nothing else", null);
}
