import { createHash, type Hash } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import type { Digest } from "../../core/protocol/canonical.js";
import type { BlobFiles } from "./blob-files.js";
import { maxInlineBlobBytes } from "./run-files.js";
import type { BlobLine } from "./transfer-format.js";

/** A blob on its way in: collected in memory while it is small, in a temporary file when it is large. */
export class IncomingBlob {
  readonly digest: Digest;
  inline: Buffer | null = null;
  part = 0;
  readonly #hash: Hash = createHash("sha256");
  readonly #bytes: number;
  readonly #parts: number;
  readonly #file: { readonly path: string; readonly descriptor: number } | null = null;
  #received = 0;
  #isOpen = true;

  constructor(
    first: BlobLine,
    private readonly files: BlobFiles,
  ) {
    this.digest = first.blob;
    this.#bytes = first.bytes;
    this.#parts = first.parts;
    if (first.bytes <= maxInlineBlobBytes) return;
    const path = files.temporaryPath();
    this.#file = { path, descriptor: openSync(path, "wx", 0o444) };
  }

  /** What is wrong with the part; null when it was taken. */
  take(line: BlobLine): string | null {
    if (line.blob !== this.digest) return `a part of blob ${line.blob}`;
    if (line.part !== this.part || line.parts !== this.#parts || line.bytes !== this.#bytes)
      return `part ${line.part} of ${line.parts}, of ${line.bytes} bytes`;
    const bytes = Buffer.from(line.base64, "base64");
    this.#received += bytes.byteLength;
    if (this.#received > this.#bytes) return `more than the ${this.#bytes} bytes that it says`;
    this.#hash.update(bytes);
    if (this.#file === null) this.inline = this.inline === null ? bytes : Buffer.concat([this.inline, bytes]);
    else for (let at = 0; at < bytes.byteLength; ) at += writeSync(this.#file.descriptor, bytes, at);
    this.part++;
    return null;
  }

  /** What is wrong with the whole; null when it was stored. */
  finish(storeInline: (digest: Digest, bytes: Uint8Array) => void): string | null {
    if (this.#received !== this.#bytes) return `${this.#received} bytes where it says ${this.#bytes}`;
    const actual = this.#hash.digest("hex");
    if (actual !== this.digest) return `bytes whose SHA-256 is ${actual}`;
    if (this.#file === null) storeInline(this.digest, this.inline ?? Buffer.alloc(0));
    else {
      fsyncSync(this.#file.descriptor);
      this.#closeFile();
      this.files.adopt(this.#file.path, this.digest);
    }
    return null;
  }

  abandon(): void {
    this.#closeFile();
    if (this.#file !== null && existsSync(this.#file.path)) rmSync(this.#file.path, { force: true });
  }

  #closeFile(): void {
    if (this.#file === null || !this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.#file.descriptor);
  }
}
