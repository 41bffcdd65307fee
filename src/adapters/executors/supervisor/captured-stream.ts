/** Bytes of one stream: the first ones and the last ones are kept, what lies between is only counted. */
export class CapturedStream {
  private total = 0;
  private readonly first: Uint8Array[] = [];
  private firstBytes = 0;
  /** The last bytes in a circle; made when the first byte has to go there. */
  private ring: Buffer | null = null;
  private ringWritten = 0;

  constructor(
    private readonly headBytes: number,
    private readonly tailBytes: number,
  ) {}

  get bytes(): number {
    return this.total;
  }

  get omittedBytes(): number {
    return Math.max(0, this.ringWritten - this.tailBytes);
  }

  add(chunk: Uint8Array): void {
    this.total += chunk.byteLength;
    const room = this.headBytes - this.firstBytes;
    if (room > 0) {
      // Copied, because a few printed bytes may keep a large shared buffer alive.
      const head = Uint8Array.from(chunk.subarray(0, room));
      this.first.push(head);
      this.firstBytes += head.byteLength;
      if (this.first.length > 256) this.first.splice(0, this.first.length, Buffer.concat(this.first));
    }
    if (chunk.byteLength > room) this.addToRing(chunk.subarray(Math.max(0, room)));
  }

  private addToRing(chunk: Uint8Array): void {
    this.ringWritten += chunk.byteLength;
    if (this.tailBytes === 0) return;
    this.ring ??= Buffer.alloc(this.tailBytes);
    const last = chunk.subarray(Math.max(0, chunk.byteLength - this.tailBytes));
    const start = (this.ringWritten - last.byteLength) % this.tailBytes;
    const untilEnd = Math.min(last.byteLength, this.tailBytes - start);
    this.ring.set(last.subarray(0, untilEnd), start);
    this.ring.set(last.subarray(untilEnd), 0);
  }

  kept(): { head: Uint8Array; tail: Uint8Array } {
    return { head: Buffer.concat(this.first), tail: this.tail() };
  }

  private tail(): Uint8Array {
    if (this.ring === null) return Buffer.alloc(0);
    if (this.ringWritten <= this.tailBytes) return Buffer.from(this.ring.subarray(0, this.ringWritten));
    const start = this.ringWritten % this.tailBytes;
    return Buffer.concat([this.ring.subarray(start), this.ring.subarray(0, start)]);
  }
}
