import fc from "fast-check";
import { expect, test } from "vitest";
import { CapturedStream } from "./captured-stream.js";

test("head and tail are the first and the last bytes, and the middle is counted", () => {
  fc.assert(
    fc.property(fc.nat(20), fc.nat(20), fc.array(fc.uint8Array({ maxLength: 30 }), { maxLength: 12 }), (headBytes, tailBytes, chunks) => {
      const stream = new CapturedStream(headBytes, tailBytes);
      for (const chunk of chunks) stream.add(chunk);
      const all = Buffer.concat(chunks);
      const { head, tail } = stream.kept();
      const rest = all.subarray(headBytes);
      expect(Buffer.from(head)).toEqual(all.subarray(0, headBytes));
      expect(Buffer.from(tail)).toEqual(rest.subarray(Math.max(0, rest.length - tailBytes)));
      expect(stream.bytes).toBe(all.length);
      expect(head.byteLength + stream.omittedBytes + tail.byteLength).toBe(all.length);
    }),
  );
});

test("many tiny writes keep nothing but their bytes", () => {
  const stream = new CapturedStream(1000, 10);
  for (let index = 0; index < 5000; index += 1) stream.add(Buffer.from(String(index % 10)));
  expect(stream.kept().head.byteLength).toBe(1000);
  expect(Buffer.from(stream.kept().tail).toString()).toBe("0123456789");
  expect(stream.omittedBytes).toBe(3990);
});
