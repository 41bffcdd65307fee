import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { testConfiguration } from "../../../tests/support/configuration.js";
import { SimulatedRun } from "../../../tests/support/simulated-run.js";
import type { ToolCall } from "../../core/ports/session-model.js";
import { Conversation } from "./conversation.js";

const { state } = new SimulatedRun(testConfiguration(), { answer: () => "fail", measure: () => ({ value: 1 }) });
const size = (conversation: Conversation): number => Buffer.byteLength(JSON.stringify(conversation.messages()));
const call = (id: string): ToolCall => ({ id, name: "read_files", input: "{}" });

describe("a conversation", () => {
  it("stays within what its model takes in, however much its tools give, and no result stands without its call", () => {
    const results = fc.array(fc.integer({ min: 0, max: 120_000 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fc.array(results, { minLength: 1, maxLength: 8 }), fc.integer({ min: 24_000, max: 400_000 }), (turns, room) => {
        const conversation = new Conversation(state, "t0", (text) => text, room);
        for (const [turn, lengths] of turns.entries()) {
          const calls = lengths.map((_, index) => call(`${turn}-${index}`));
          conversation.answered("", calls);
          for (const [index, each] of calls.entries()) conversation.told(each, "x".repeat(lengths[index] ?? 0), false);
        }
        expect(size(conversation)).toBeLessThanOrEqual(Math.min(room, 256 * 1024));
        const known = new Set<string>();
        for (const message of conversation.messages()) {
          if (message.role === "assistant") for (const { id } of message.toolCalls) known.add(id);
          if (message.role === "tool") expect(known.has(message.call.id)).toBe(true);
        }
      }),
      { numRuns: 40 },
    );
  });

  it("keeps the newest results whole while there is room, and tells a model no secret", () => {
    const conversation = new Conversation(state, "t0", (text) => text.replaceAll("tiny", "[redacted]"), null);
    for (let turn = 0; turn < 5; turn++) {
      conversation.answered("", [call(`c${turn}`)]);
      conversation.told(call(`c${turn}`), `${turn}`.repeat(80_000), false);
    }
    const told = conversation.messages().flatMap((message) => (message.role === "tool" ? [message.text.length] : []));
    expect(told.slice(-2)).toEqual([80_000, 80_000]);
    expect(told[0]).toBeLessThan(100);
    expect(JSON.stringify(conversation.messages())).not.toContain("tiny");
  });
});
