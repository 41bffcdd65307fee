import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { testEnvironment } from "../../../tests/support/configuration.js";
import { assemble, byteLength, filesThatFit, firstBytes, newestThatFit, repairOf } from "./prompt.js";
import { draft } from "./proposal.js";
import type { ProposalDocument } from "./proposal-prompt.js";

const text = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc.string({ unit: "grapheme", maxLength: 50 }),
  fc.constant("long ü\n".repeat(20_000)),
);
const document: fc.Arbitrary<ProposalDocument> = fc.record({
  environment: fc.record({
    name: text,
    description: text,
    knowledge: fc.array(fc.record({ path: text, text }), { maxLength: 4 }),
    metrics: fc.array(fc.record({ name: text, direction: fc.constant("minimize") }), { maxLength: 3 }),
    gates: fc.array(fc.jsonValue(), { maxLength: 3 }),
    editable: fc.array(text, { maxLength: 3 }),
    maxBytes: fc.nat(),
    limits: fc.array(fc.record({ stage: text, wallMs: fc.nat(), memoryBytes: fc.nat(), cpus: fc.nat() }), { maxLength: 2 }),
  }),
  base: fc.record({
    trial: fc.constant("t1"),
    status: fc.constant("keep"),
    value: fc.double(),
    hypothesis: text,
    files: fc.dictionary(fc.string({ maxLength: 30 }), text, { maxKeys: 5 }),
  }),
  failure: fc.option(fc.record({ status: text, stage: text, reason: text, output: text })),
  memory: fc.array(fc.record({ trial: fc.constant("t2"), hypothesis: text, status: fc.constant("discard"), value: fc.double() }), {
    maxLength: 60,
  }),
  best: fc.option(fc.record({ trial: fc.constant("t1"), value: fc.double() })),
  notes: fc.array(text, { maxLength: 12 }),
  steering: fc.record({ held: fc.array(fc.constant("t123456789"), { maxLength: 12 }), pinned: fc.array(text, { maxLength: 12 }) }),
  trialsLeft: fc.option(fc.nat()),
  activeMsLeft: fc.option(fc.nat()),
});

describe("a prompt", () => {
  it("says in a line each what the operator pins and holds, and nothing where there is nothing", () => {
    fc.assert(
      fc.property(document, (given) => {
        const told = draft.prompt({ ...given, best: null, steering: { held: ["t4", "t7"], pinned: ["t3"] } }).user;
        expect(told).toContain("Pinned by the operator, to be improved next: t3\nHeld by the operator, not to be built on: t4, t7");
        const none = draft.prompt({ ...given, steering: { held: [], pinned: [] } }).user;
        expect(none).not.toMatch(/(Pinned|Held) by the operator/);
      }),
      { numRuns: 20 },
    );
  });

  it("never holds more bytes than its role says", () => {
    fc.assert(
      fc.property(
        document,
        text,
        fc.array(fc.record({ code: text, message: text, path: fc.option(text) }), { maxLength: 20 }),
        (given, before, wrong) => {
          const { system, user, answer } = draft.prompt(given);
          const repair = repairOf(before, wrong);
          const bytes = [system, user, JSON.stringify(answer), repair?.answer ?? "", repair?.message ?? ""].map(byteLength);
          const { name, description, knowledge } = given.environment;
          const held = Object.values(given.base.files).reduce((total, file) => total + byteLength(file), 0);
          const surface = { editable: [], maxBytes: held };
          const most = draft.promptBytes({ ...testEnvironment({ name, description, knowledge: [...knowledge] }), surface });
          expect(bytes.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(most);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("shrinks in proportion where a model takes in less", () => {
    fc.assert(
      fc.property(document, fc.integer({ min: 6000, max: 200_000 }), (given, room) => {
        const { system, user } = draft.prompt(given, room);
        expect(byteLength(system) + byteLength(user)).toBeLessThanOrEqual(room);
      }),
      { numRuns: 60 },
    );
  });

  it("says where something was cut, and never cuts a character in two", () => {
    const long = "ü".repeat(500);
    expect(assemble([{ title: "A", text: long, bytes: 101, drop: "end" }])).toMatch(/^# A\n\nü+\n\[… cut to fit …\]\n\n$/);
    expect(assemble([{ title: "A", text: long, bytes: 101, drop: "middle" }])).toMatch(/^# A\n\nü+\n\[… cut to fit …\]\nü+\n$/);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(60), (whole, bytes) => {
        const cut = firstBytes(whole, bytes);
        expect(whole.startsWith(cut) && byteLength(cut) <= bytes).toBe(true);
      }),
    );
  });

  it("drops the oldest of what was tried first", () => {
    expect(newestThatFit(["one", "two", "three"], 10)).toBe("two\nthree");
  });

  it("shows files whole, and names those that do not fit", () => {
    const shown = filesThatFit({ "a.py": "x = 1", "b.py": "y".repeat(5000), "c.py": "z = 3" }, 3000);
    expect(shown).toContain('<file path="a.py">\nx = 1\n</file>');
    expect(shown).toContain("z = 3");
    expect(shown).toContain("b.py (5000 bytes)");
  });
});
