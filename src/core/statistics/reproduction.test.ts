import { describe, expect, it } from "vitest";
import { reproductionOf, sameSeedsOf } from "./reproduction.js";

describe("reproductionOf", () => {
  it.each([
    ["improved", "improved", 1, null, "reproduced"],
    ["improved", "improved", 1, 2, "undecided"],
    ["improved", "not_improved", -1, null, "not_reproduced"],
    ["improved", "undecided", 1, null, "undecided"],
    ["not_improved", "improved", 1, null, "not_reproduced"],
    ["not_improved", "improved", 1, 2, "reproduced"],
    ["not_improved", "not_improved", -1, null, "reproduced"],
    ["undecided", "undecided", 0, null, "reproduced"],
  ] as const)("%s there, %s here with a gain of %s, minimum %s: %s", (recorded, here, gain, minimum, expected) => {
    expect(reproductionOf({ result: recorded }, { result: here, gain }, minimum)).toBe(expected);
  });
});

describe("sameSeedsOf", () => {
  it("compares to the digit, leaves clocks out, and takes no missing value for a zero", () => {
    const before = { score: 0.1 + 0.2, seconds: 3, gone: 1 };
    expect(
      sameSeedsOf(
        [
          [before, { score: 0.3, seconds: 4 }],
          [{ score: 1 }, { score: 1 }],
        ],
        new Set(["seconds"]),
      ),
    ).toEqual({
      compared: 2,
      equal: 1,
      largestDifference: expect.closeTo(0, 10),
    });
    expect(sameSeedsOf([[{ seconds: 3 }, { seconds: 4 }]], new Set(["seconds"]))).toEqual({
      compared: 0,
      equal: 0,
      largestDifference: null,
    });
  });
});
