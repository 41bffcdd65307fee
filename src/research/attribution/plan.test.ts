import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../tests/support/configuration.js";
import { initialState, type RunState, type Trial } from "../../core/harness/state.js";
import { canonicalJson, digestOf } from "../../core/protocol/canonical.js";
import type { TrialStatus } from "../../core/protocol/status.js";
import { type CandidateBlobs, contentOf, manifestOfTree, type Tree } from "./changes.js";
import { hunksOf } from "./hunks.js";
import { planAttribution } from "./plan.js";

type Files = Readonly<Record<string, string | Uint8Array>>;

const tree = (files: Files): Tree =>
  new Map(
    Object.entries(files).map(([path, text]) => [path, contentOf(typeof text === "string" ? new TextEncoder().encode(text) : text, false)]),
  );
const words = (of: Tree): Record<string, string> =>
  Object.fromEntries([...of].map(([path, { bytes }]) => [path, new TextDecoder().decode(bytes)]));

/** A run of which nothing but the lineage matters: each trial on the one before, `t0` the baseline. */
function lineage(maxBytes: number, ...steps: { readonly files: Files; readonly status?: TrialStatus; readonly retracted?: boolean }[]) {
  const blobs = new Map<string, Uint8Array>();
  const put = (bytes: Uint8Array): string => {
    blobs.set(digestOf(bytes), bytes);
    return digestOf(bytes);
  };
  const state: RunState = initialState();
  const environment = testEnvironment({ surface: { editable: ["**"], maxBytes } });
  state.configuration = testConfiguration({ environment });
  for (const [index, { files, status = "keep", retracted = false }] of steps.entries()) {
    const candidate = tree(files);
    for (const { bytes } of candidate.values()) put(bytes);
    const manifest = new TextEncoder().encode(canonicalJson(manifestOfTree(candidate)));
    const trial: Partial<Trial> = {
      id: `t${index}`,
      kind: index === 0 ? "baseline" : "search",
      base: index === 0 ? null : `t${index - 1}`,
      candidate: { blob: put(manifest), bytes: manifest.byteLength, manifest: true },
      hypothesis: `step ${index}`,
      status,
      retracted,
    };
    state.trials[`t${index}`] = trial as Trial;
  }
  const read: CandidateBlobs = { blob: (digest) => blobs.get(digest) ?? expect.fail(`no blob ${digest}`) };
  return (winner = `t${steps.length - 1}`, by: "step" | "hunk" = "step") => planAttribution(state, winner, by, read);
}

const ablationsOf = (plan: ReturnType<ReturnType<typeof lineage>>): Record<string, Record<string, string>> =>
  Object.fromEntries(plan.ablations.map((each) => [each.changes.join("+"), words(each.tree)]));

describe("taking a winner apart", () => {
  it("names what was not kept itself in the step that it is part of", () => {
    const text = (lines: number): Files => ({ "a.txt": "x\n".repeat(lines) });
    const plan = lineage(1000, { files: text(1) }, { files: text(2), status: "crashed" }, { files: text(3) }, { files: text(4) })();
    expect(plan.changes.map(({ id, words }) => [id, words])).toEqual([
      ["t2", "t1: step 1 | t2: step 2"],
      ["t3", "step 3"],
    ]);
  });

  it("leaves out each change, by lines, and keeps the later ones", () => {
    const plan = lineage(
      1000,
      { files: { "a.txt": "one\ntwo\nthree\n" } },
      { files: { "a.txt": "ONE\ntwo\nthree\n" } },
      { files: { "a.txt": "ONE\ntwo\nTHREE\n", "b.txt": "new" } },
    )();
    expect(ablationsOf(plan)).toEqual({
      t1: { "a.txt": "one\ntwo\nTHREE\n", "b.txt": "new" },
      t2: { "a.txt": "ONE\ntwo\nthree\n" },
    });
    expect(plan.changes.map(({ base, words: hypothesis }) => [base, hypothesis])).toEqual([
      ["t0", "step 1"],
      ["t1", "step 2"],
    ]);
  });

  it("of one change is the baseline", () => {
    const plan = lineage(1000, { files: { "a.txt": "1" } }, { files: { "a.txt": "2" } })();
    expect(ablationsOf(plan)).toEqual({ t1: { "a.txt": "1" } });
  });

  it("counts what was not kept, or was retracted, into the next keep", () => {
    const plan = lineage(
      1000,
      { files: { "a.txt": "1\n" } },
      { files: { "a.txt": "1\nbroken\n" }, status: "crashed" },
      { files: { "a.txt": "1\nmended\n" } },
      { files: { "a.txt": "1\nmended\nwrong\n" }, retracted: true },
      { files: { "a.txt": "1\nmended\nwrong\nlast\n" } },
    )();
    expect(plan.changes.map(({ id, base }) => [id, base])).toEqual([
      ["t2", "t0"],
      ["t4", "t2"],
    ]);
    expect(ablationsOf(plan)).toEqual({ t2: { "a.txt": "1\nwrong\nlast\n" }, t4: { "a.txt": "1\nmended\n" } });
  });

  it("leaves entangled changes out with the one that stands on their lines, and with no other", () => {
    const plan = lineage(
      1000,
      { files: { "a.txt": "1\nx\n" } },
      { files: { "a.txt": "2\nx\n" } },
      { files: { "a.txt": "2\ny\n" } },
      { files: { "a.txt": "3\ny\n" } },
    )();
    expect(Object.keys(ablationsOf(plan))).toEqual(["t1+t3", "t2", "t3"]);
    expect(ablationsOf(plan)["t1+t3"]).toEqual({ "a.txt": "1\ny\n" });
    expect(plan.entangled.get("t1")).toEqual({ with: ["t3"], paths: ["a.txt"], together: true });
  });

  it("takes binary, added and deleted files whole, and says what nothing is left of", () => {
    const plan = lineage(
      1000,
      { files: { "m.bin": Uint8Array.of(0, 1), "old.txt": "old", "a.txt": "1" } },
      { files: { "m.bin": Uint8Array.of(0, 2), "old.txt": "old", "a.txt": "2" } },
      { files: { "m.bin": Uint8Array.of(0, 2), "new.txt": "new", "a.txt": "2" } },
      { files: { "m.bin": Uint8Array.of(0, 3), "new.txt": "newer", "a.txt": "2" } },
      { files: { "m.bin": Uint8Array.of(0, 3), "new.txt": "newer", "a.txt": "1" } },
    )();
    // t1's binary was overwritten by t3, and its text taken back by t4.
    expect(plan.entangled.get("t1")).toMatchObject({ with: ["t3"], paths: ["m.bin"] });
    expect(plan.entangled.get("t2")).toMatchObject({ with: ["t3"], paths: ["new.txt"] });
    expect(ablationsOf(plan)["t2+t3"]).toMatchObject({ "old.txt": "old" });
    expect(ablationsOf(plan)["t4"]).toMatchObject({ "a.txt": "2" });
    const undone = lineage(1000, { files: { "a.txt": "1" } }, { files: { "a.txt": "2" } }, { files: { "a.txt": "1", "b.txt": "" } })();
    expect([...undone.absent]).toEqual(["t1"]);
  });

  it("does not measure what the surface does not admit", () => {
    const plan = lineage(
      12,
      { files: { "a.txt": "0123456789" } },
      { files: { "a.txt": "1" } },
      { files: { "a.txt": "1", "b.txt": "12345" } },
    )();
    expect(plan.inadmissible.get("t1")).toContain("at most 12");
    expect(Object.keys(ablationsOf(plan))).toEqual(["t2"]);
  });

  it("by hunk takes each passage out of the whole difference; by file where there are too many", () => {
    const plan = lineage(
      1000,
      { files: { "a.txt": "1\n2\n3\n4\n5\n" } },
      { files: { "a.txt": "I\n2\n3\n4\nV\n", "b.txt": "b" } },
    )("t1", "hunk");
    expect(plan.changes.map(({ id, words: where }) => `${id} ${where}`)).toEqual([
      "h1 a.txt, line 1",
      "h2 a.txt, line 5",
      "h3 b.txt, added",
    ]);
    expect(ablationsOf(plan)["h2"]).toEqual({ "a.txt": "I\n2\n3\n4\n5\n", "b.txt": "b" });
    const many = (letter: string): Files => ({
      "a.txt": Array.from({ length: 40 }, (_each, n) => (n % 2 === 0 ? letter : "same")).join("\n"),
    });
    expect(hunksOf(tree(many("x")), tree(many("y"))).map(({ words: where }) => where)).toEqual(["a.txt, changed"]);
  });
});
