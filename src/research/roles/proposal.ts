import { isPlainPath, readProposal, violation } from "../../core/harness/admission.js";
import type { ProposalView } from "../../core/harness/views.js";
import { type CandidateFile, type CandidateManifest, manifestOf } from "../../core/protocol/candidate.js";
import { canonicalJson, type Digest } from "../../core/protocol/canonical.js";
import type { Answer } from "../../core/protocol/commands.js";
import type { Environment } from "../../core/protocol/environment.js";
import type { BlobReference } from "../../core/protocol/ids.js";
import { type Blobs, manifestAt, type Role } from "./role.js";

const decoder = new TextDecoder();

/** Characters of a failed stage's output that a role is shown: the beginning and the end. */
const shownOutput = { whole: 5100, each: 2500 };

/** A role that proposes a change of files, a plan with its candidate in one; what it is asked to do is in its name and view. */
function proposer(name: string): Role<ProposalView> {
  return { name, document: proposalDocument, read: readAnswer };
}

export const draft = proposer("draft");
export const debug = proposer("debug");
export const improve = proposer("improve");

function proposalDocument(view: ProposalView, environment: Environment, blobs: Blobs): unknown {
  const { base, failure } = view;
  return {
    environment: {
      name: environment.name,
      description: environment.description,
      knowledge: environment.knowledge,
      metrics: environment.metrics.map(({ name, direction }) => ({ name, direction })),
      gates: environment.gates,
      editable: environment.surface.editable,
      maxBytes: environment.surface.maxBytes,
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
  const output = parseJson(decoder.decode(raw));
  if (output === undefined)
    return { kind: "unreadable", violations: [violation("not_json", "the answer must be one JSON document and nothing else", null)] };
  const proposal = readProposal(output);
  if (!("edits" in proposal)) return { kind: "unreadable", violations: proposal };
  const outside = [...proposal.edits.keys()].filter((path) => !isPlainPath(path));
  if (outside.length > 0)
    return {
      kind: "unreadable",
      violations: outside.map((path) =>
        violation("path_outside", "a path must be relative, with forward slashes, without . or .. parts", path),
      ),
    };
  const manifest = applyEdits(manifestAt(base, blobs), proposal.edits, blobs);
  const bytes = new TextEncoder().encode(canonicalJson(manifest));
  return {
    kind: "proposal",
    hypothesis: proposal.hypothesis,
    expectedGain: proposal.expectedGain,
    respondsTo: proposal.respondsTo,
    commitment: proposal.commitment,
    candidate: { ...blobs.putBlob(bytes), manifest: true },
    manifest,
    edited: [...proposal.edits.keys()],
  };
}

function applyEdits(base: CandidateManifest, edits: ReadonlyMap<string, string | null>, blobs: Blobs): CandidateManifest {
  const files = new Map<string, CandidateFile>(base.files.map((file) => [file.path, file]));
  for (const [path, content] of edits) {
    if (content === null) files.delete(path);
    else {
      const stored = blobs.putBlob(new TextEncoder().encode(content));
      files.set(path, { path, digest: stored.blob, bytes: stored.bytes, executable: files.get(path)?.executable ?? false });
    }
  }
  return manifestOf([...files.values()]);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
