import type { Edit, Files } from "../../core/harness/admission.js";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import { canonicalJson } from "../../core/protocol/canonical.js";
import type { CandidateProposal } from "../../core/protocol/commands.js";
import type { Violation } from "../../core/protocol/events.js";
import { changedManifest, newTexts } from "../roles/candidate-change.js";
import { type Blobs, manifestAt } from "../roles/role.js";

const decoder = new TextDecoder();

/** A session's working copy: a base trial's files, and what was changed since. A snapshot of it is what is handed in. */
export class Workbench {
  private manifest: CandidateManifest;
  private readonly edited = new Set<string>();

  constructor(
    private readonly blobs: Blobs,
    /** The trial that it starts from. */
    public base: string,
    candidate: string,
  ) {
    this.manifest = manifestAt(candidate, blobs);
  }

  /** Starts anew from another trial; what was changed is gone. */
  rebase(base: string, candidate: string): void {
    this.base = base;
    this.manifest = manifestAt(candidate, this.blobs);
    this.edited.clear();
  }

  /** Changes the copy; null, or what is wrong, and nothing was changed. */
  change(files: Files, edits: readonly Edit[]): Violation[] | null {
    const texts = newTexts({ files, edits }, this.manifest, this.blobs, (text) => text);
    if (Array.isArray(texts)) return texts;
    this.manifest = changedManifest(this.manifest, texts, this.blobs);
    for (const path of texts.keys()) this.edited.add(path);
    return null;
  }

  /** Another one in the same state: what is changed there is not changed here. */
  copy(): Workbench {
    const other = Object.assign(Object.create(Workbench.prototype) as Workbench, this);
    return Object.assign(other, { edited: new Set(this.edited) });
  }

  text(path: string): string | null {
    const file = this.manifest.files.find((each) => each.path === path);
    return file === undefined ? null : decoder.decode(this.blobs.blob(file.digest));
  }

  files(): readonly { readonly path: string; readonly bytes: number }[] {
    return this.manifest.files.map(({ path, bytes }) => ({ path, bytes }));
  }

  /** The copy as it is now, stored. */
  snapshot(): CandidateProposal {
    const bytes = new TextEncoder().encode(canonicalJson(this.manifest));
    return { candidate: { ...this.blobs.putBlob(bytes), manifest: true }, manifest: this.manifest, edited: [...this.edited] };
  }
}
