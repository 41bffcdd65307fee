import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readProposal } from "./admission.js";
import { applyEdits } from "./edits.js";

const files: Readonly<Record<string, string>> = { "a.py": "x = 1\ny = 2\nx = 1\n" };
const apply = (path: string, search: string, replace: string): unknown => applyEdits([{ path, search, replace }], (name) => files[name]);
const code = (result: unknown): string => (Array.isArray(result) ? result.map(({ code }) => code).join() : "applied");

describe("an edit", () => {
  it("replaces the one passage that it names", () => {
    expect(apply("a.py", "y = 2", "y = $&3")).toEqual(new Map([["a.py", "x = 1\ny = $&3\nx = 1\n"]]));
  });

  it("makes a file when it searches nothing", () => {
    expect(apply("b.py", "", "new\n")).toEqual(new Map([["b.py", "new\n"]]));
  });

  it.each([
    ["a passage that is not there", "a.py", "z = 9", "edit_no_match"],
    ["a passage that is there twice", "a.py", "x = 1", "edit_ambiguous"],
    ["passages that overlap", "c.py", "aa", "edit_ambiguous"],
    ["nothing, in a file that exists", "a.py", "", "edit_no_match"],
    ["a file that does not exist", "b.py", "x", "edit_no_match"],
  ])("is refused for %s", (_what, path, search, expected) => {
    const result = applyEdits([{ path, search, replace: "" }], (name) => (name === "c.py" ? "aaa" : files[name]));
    expect(code(result)).toBe(expected);
  });

  it("says at which lines an ambiguous passage stands, and which line was nearly meant", () => {
    expect(JSON.stringify(apply("a.py", "x = 1", ""))).toContain("at lines 1, 3");
    expect(JSON.stringify(apply("a.py", "  y = 2\n\n", ""))).toContain("line 2");
  });

  it("sees what the edit before it left", () => {
    const edits = [
      { path: "a.py", search: "y = 2", replace: "y = 3" },
      { path: "a.py", search: "y = 3", replace: "y = 4" },
    ];
    expect(applyEdits(edits, (name) => files[name])).toEqual(new Map([["a.py", "x = 1\ny = 4\nx = 1\n"]]));
  });

  it("applies exactly when its passage occurs once", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "\n"), maxLength: 12 });
    fc.assert(
      fc.property(text, text, text, (whole, search, replace) => {
        const occurs = [...whole].filter((_, place) => search !== "" && whole.startsWith(search, place)).length;
        const result = applyEdits([{ path: "f", search, replace }], () => whole);
        expect(Array.isArray(result)).toBe(occurs !== 1);
        if (!Array.isArray(result)) expect(result.get("f")?.length).toBe(whole.length - search.length + replace.length);
      }),
    );
  });
});

describe("a proposal", () => {
  const plan = { hypothesis: "h" };
  it.each([
    ["no object", 3, "not_an_object"],
    ["no plan", { files: { a: "x" } }, "plan_missing"],
    ["no hypothesis", { plan: { hypothesis: " " }, files: { a: "x" } }, "hypothesis_missing"],
    ["no change", { plan, files: [], edits: [] }, "files_missing"],
    ["files of another shape", { plan, files: "x" }, "files_missing"],
    ["a file without a path", { plan, files: [{ content: "x" }] }, "file_not_text"],
    ["a binary file", { plan, files: { a: "x\u0000y" } }, "file_not_text"],
    ["an edit without a search", { plan, edits: [{ path: "a", replace: "x" }] }, "edit_shape"],
    ["edits of another shape", { plan, edits: { path: "a" } }, "edit_shape"],
    ["a file whole and edited", { plan, files: { a: "x" }, edits: [{ path: "a", search: "x", replace: "y" }] }, "edit_conflict"],
    ["an id of no trial", { plan: { ...plan, responds_to: ["trial three"] }, files: { a: "x" } }, "unknown_trial"],
  ])("with %s is refused", (_what, output, expected) => {
    expect(code(readProposal(output))).toBe(expected);
  });

  it("gives files by path or as a list", () => {
    const byPath = readProposal({ plan, files: { a: "x", b: null } });
    expect(
      readProposal({
        plan,
        files: [
          { path: "a", content: "x" },
          { path: "b", content: null },
        ],
      }),
    ).toEqual(byPath);
  });
});
