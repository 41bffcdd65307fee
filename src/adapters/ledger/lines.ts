import { StringDecoder } from "node:string_decoder";
import { TrialistError } from "../../core/protocol/errors.js";

/** A line is longer than its reader takes, or it is not UTF-8. */
export class LineRefusedError extends TrialistError {
  readonly kind = "usage";
}

/** Splits a byte stream into lines, holding one at a time. The last may lack its line feed. @throws LineRefusedError */
export async function* linesOf(chunks: AsyncIterable<Uint8Array | string>, maxLength: number, where: string): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  let line = new Line(maxLength, `${where}, line 1`);
  let count = 1;
  for await (const chunk of chunks) {
    const text = typeof chunk === "string" ? chunk : decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    const pieces = text.split("\n");
    const rest = pieces.pop() ?? "";
    for (const piece of pieces) {
      line.add(piece);
      yield line.text();
      line = new Line(maxLength, `${where}, line ${++count}`);
    }
    line.add(rest);
  }
  line.add(decoder.end());
  if (line.length > 0) yield line.text();
}

/** A line that grows piece by piece and is joined once. */
class Line {
  readonly #pieces: string[] = [];
  length = 0;

  constructor(
    private readonly maxLength: number,
    private readonly where: string,
  ) {}

  add(piece: string): void {
    this.length += piece.length;
    if (this.length > this.maxLength)
      throw new LineRefusedError({ expected: `at most ${this.maxLength} characters`, found: "a longer line", where: this.where });
    if (piece !== "") this.#pieces.push(piece);
  }

  text(): string {
    return this.#pieces.join("");
  }
}
