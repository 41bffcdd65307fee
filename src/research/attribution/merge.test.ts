import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyEdits, editsBetween, linesOf, mergeTexts } from "./merge.js";

const text = (...lines: string[]): string => lines.map((line) => `${line}\n`).join("");

describe("a merge by lines", () => {
  const base = text("a", "b", "c", "d");

  it("takes both sides' changes, also of lines side by side", () => {
    expect(mergeTexts(base, text("A", "b", "c", "d"), text("a", "b", "c", "D"))).toBe(text("A", "b", "c", "D"));
    expect(mergeTexts(base, text("a", "B", "c", "d"), text("a", "b", "C", "d"))).toBe(text("a", "B", "C", "d"));
  });

  it("gives up where both changed one line, or put something into one place", () => {
    expect(mergeTexts(base, text("a", "B", "c", "d"), text("a", "x", "c", "d"))).toBeNull();
    expect(mergeTexts(base, text("a", "x", "b", "c", "d"), text("a", "y", "b", "c", "d"))).toBeNull();
    expect(mergeTexts(base, text("a", "d"), text("a", "b", "C", "d"))).toBeNull();
  });

  it("takes what both did alike once, and what was put beside something that is taken out", () => {
    expect(mergeTexts(base, text("a", "B", "c", "d"), text("a", "B", "c", "d"))).toBe(text("a", "B", "c", "d"));
    // A later change appended y behind the x that is left out.
    expect(mergeTexts(text("a", "x"), text("a", "x", "y"), text("a"))).toBe(text("a", "y"));
  });

  it("keeps line ends and a last line without one", () => {
    expect(mergeTexts("a\r\nb\r\nc", "A\r\nb\r\nc", "a\r\nb\r\nC")).toBe("A\r\nb\r\nC");
    expect(mergeTexts("", "", "x\n")).toBe("x\n");
  });

  it("of one side alone is that side, and edits lead where they say", () => {
    const lines = fc.array(fc.constantFrom("a\n", "b\n", "c\n", "x\n"), { maxLength: 12 });
    fc.assert(
      fc.property(lines, lines, (from, to) => {
        expect(mergeTexts(from.join(""), to.join(""), from.join(""))).toBe(to.join(""));
        expect(mergeTexts(from.join(""), from.join(""), to.join(""))).toBe(to.join(""));
        expect(applyEdits(from, editsBetween(from, to) ?? [])).toEqual(to);
        expect(linesOf(from.join("")).join("")).toBe(from.join(""));
      }),
    );
  });

  it("does not look for ever for a way between texts that have nothing in common", () => {
    const far = (prefix: string): string => text(...Array.from({ length: 5000 }, (_each, index) => `${prefix}${index}`));
    expect(mergeTexts(far("a"), far("b"), far("a"))).toBeNull();
  });
});
