import { describe, expect, it } from "vitest";
import { modelSettings } from "../model/settings.js";
import type { Exchange } from "../model/traffic.js";
import { AgentBill } from "./agent-bill.js";
import { confined } from "./confine.js";
import { type WireFormat, wireFormatOf } from "./wire-formats.js";

const settings = modelSettings.parse({ provider: "anthropic", model: "m", maxOutputTokens: 500 });
const price = { input: 10, cachedInput: 1, output: 100, asOf: "configured" };
const format = wireFormatOf("/messages") as WireFormat;

function billOf(given: Record<string, unknown>): AgentBill {
  const request = confined({ model: "m", max_tokens: 100, ...given }, format, settings);
  if (typeof request === "string") throw new Error(request);
  return new AgentBill(settings, price, format, request, JSON.stringify(request.body));
}

function reply(usage: unknown, more: Partial<Exchange> = {}): Exchange {
  return {
    url: "http://x/v1/messages",
    method: "POST",
    requestHeaders: {},
    requestBody: "",
    status: 200,
    responseHeaders: { "content-type": "application/json" },
    responseBody: JSON.stringify({ content: [], ...(usage === null ? {} : { usage }) }),
    startedAfterMs: 0,
    ms: 1,
    error: null,
    ...more,
  };
}

describe("what an agent's request costs", () => {
  it.each([
    [{}, 1],
    [{ cache_control: { type: "ephemeral" } }, 1.25],
    [{ cache_control: { type: "ephemeral", ttl: "1h" } }, 2],
  ])("charges what %j writes into a cache at %d times the price of input", (given, times) => {
    const { usage, model } = billOf(given).settle(
      reply({ input_tokens: 10, cache_creation_input_tokens: 1000, cache_read_input_tokens: 100, output_tokens: 7 }),
    );
    expect(usage).toMatchObject({ tokens: 1117 });
    expect(usage.costUsd).toBeCloseTo((10 * 10 + 1000 * 10 * times + 100 * 1 + 7 * 100) / 1e6, 12);
    expect(model.use.costUsd).toBe(usage.costUsd);
  });

  it.each([
    ["says nothing", reply(null)],
    ["breaks off", reply(null, { error: { kind: "cut_off", message: "it broke" } })],
    ["never comes", reply(null, { status: null, error: { kind: "stopped", message: "it was stopped" } })],
  ])("is the reserved worst case when the reply %s", (_how, exchange) => {
    const bill = billOf({ cache_control: { type: "ephemeral" } });
    const { usage, model } = bill.settle(exchange);
    expect(usage.tokens).toBe(bill.worst().tokens);
    expect(usage.costUsd).toBeCloseTo(bill.worst().costUsd, 12);
    expect(model.use.billedAtWorst).toBe(1);
  });

  it("is nothing for a reply that is an error", () => {
    expect(billOf({}).settle(reply(null, { status: 529 })).usage).toMatchObject({ costUsd: 0, tokens: 0 });
  });
});

describe("an agent's request as it goes out", () => {
  it.each([
    [
      "/chat/completions",
      { stream: true, n: 4, tools: [{ type: "function" }] },
      { max_tokens: 500, stream_options: { include_usage: true } },
      ["n"],
    ],
    [
      "/responses",
      { store: true, background: true, tools: [{ type: "web_search" }] },
      { max_output_tokens: 500, store: false },
      ["background", "tools"],
    ],
    ["/messages", { speed: "fast" }, { max_tokens: 500 }, ["speed"]],
  ])("over %s is capped and held", (path, given, expected, gone) => {
    const request = confined({ model: "m", ...given }, wireFormatOf(path) as WireFormat, settings);
    if (typeof request === "string") throw new Error(request);
    expect(request.body).toMatchObject(expected);
    for (const field of gone) expect(request.body).not.toHaveProperty(field);
    expect(request.maxOutputTokens).toBe(500);
  });

  it.each([
    [{ previous_response_id: "resp-1" }],
    [{ max_output_tokens: "many" }],
    [{ input: [{ role: "user", content: [{ type: "input_image", image_url: "https://x/y.png" }] }] }],
    [{ input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }] }],
    // A page or a picture may be more tokens than it has bytes.
    [{ input: [{ role: "user", content: [{ type: "input_file", file_data: "AAAA" }] }] }],
    [{ messages: [{ role: "user", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }] }] }],
  ])("is refused for %j", (given) => {
    expect(confined(given, wireFormatOf("/responses") as WireFormat, settings)).toEqual(expect.any(String));
  });

  it("may speak of addresses, and of pictures to a tool of its own", () => {
    const content = [
      { type: "text", text: "see https://example.org" },
      { type: "tool_use", id: "1", name: "fetch", input: { type: "image", url: "https://x" } },
    ];
    expect(confined({ messages: [{ role: "user", content }] }, format, settings)).not.toEqual(expect.any(String));
  });
});
