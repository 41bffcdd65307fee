import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { withFallback } from "../../src/adapters/researchers/model/fallback.js";
import { modelResearcher } from "../../src/adapters/researchers/model/model-researcher.js";
import { replayingFetch } from "../../src/adapters/researchers/model/replaying-fetch.js";
import { modelSettings } from "../../src/adapters/researchers/model/settings.js";
import { exchangesOf } from "../../src/adapters/researchers/model/traffic.js";
import { promptBytesOf, worstCaseOfRequest } from "../../src/adapters/researchers/model/worst-case.js";
import { never, price, question, researcherAt, worstInput } from "../support/model-question.js";
import { answer, answers, inTurn, type ModelServer, startModelServer, status } from "../support/model-server.js";

const servers: ModelServer[] = [];
const place = mkdtempSync(join(tmpdir(), "trialist-model-"));
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

async function serverWith(...respond: Parameters<typeof startModelServer>): Promise<ModelServer> {
  const server = await startModelServer(...respond);
  servers.push(server);
  return server;
}

const refusal = (message: string) =>
  status(400, { error: { message, type: "invalid_request_error", param: null, code: "unsupported_value" } });
const textOf = (raw: Uint8Array): string => Buffer.from(raw).toString("utf8");

describe("a parameter that the model refuses", () => {
  it("is left out once, said so, and not offered again", async () => {
    const server = await serverWith(
      inTurn(refusal("Unsupported value: 'temperature' does not support 0.2 with this model."), answer("fine")),
    );
    const { researcher, waits } = researcherAt(server.url, "openai-compatible", { parameters: { temperature: 0.2 } });
    const found = await researcher.answer(question(), never());
    await researcher.answer(question({ call: "c2" }), never());
    expect(server.requests.map(({ body }) => body?.["temperature"])).toEqual([0.2, undefined, undefined]);
    expect(found.model!.use.warnings).toEqual([expect.stringContaining("temperature")]);
    expect(found.model!.use.parameters).toEqual({ maxOutputTokens: 8192 });
    expect(found.model!.use).toMatchObject({ requests: 2, billedAtWorst: 0 });
    expect(waits).toEqual([]);
  });

  it("may be several in turn, down to the format of the answer; the cap on output goes by its other name", async () => {
    const server = await serverWith(
      inTurn(
        refusal("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        refusal("reasoning_effort is not supported"),
        refusal("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model"),
        refusal("'response_format' is not supported"),
        answer("fine"),
      ),
    );
    const { researcher } = researcherAt(server.url, "openai-compatible", { reasoningEffort: "high" });
    const found = await researcher.answer(question(), never());
    const last = server.requests.at(-1)!.body!;
    expect(last).toMatchObject({ max_completion_tokens: 8192 });
    for (const name of ["max_tokens", "reasoning_effort", "response_format"]) expect(last).not.toHaveProperty(name);
    expect(server.requests[3]!.body).toMatchObject({ response_format: { type: "json_object" } });
    expect(found.model!.use.warnings).toHaveLength(4);
  });

  it("that goes on being refused ends the call", async () => {
    const server = await serverWith(() => refusal("temperature is not supported"));
    const { researcher } = researcherAt(server.url, "openai-compatible", { parameters: { temperature: 0.2 } });
    await expect(researcher.answer(question(), never())).rejects.toMatchObject({ kind: "request_refused" });
    expect(server.requests).toHaveLength(2);
  });

  it("is left out of calls side by side", async () => {
    const server = await serverWith(({ body }) =>
      body?.["temperature"] === undefined ? answer("fine") : refusal("temperature is not supported"),
    );
    const { researcher } = researcherAt(server.url, "openai-compatible", { parameters: { temperature: 0.2 } });
    const found = await Promise.all(["c1", "c2", "c3"].map((call) => researcher.answer(question({ call }), never())));
    expect(found.map(({ raw }) => textOf(raw))).toEqual(["fine", "fine", "fine"]);
  });
});

describe("what a call may still use", () => {
  it("keeps a request from being made whose worst case passes it", async () => {
    const server = await serverWith(answers("x"));
    const { researcher } = researcherAt(server.url, "anthropic");
    for (const allowance of [{ tokens: 8000 }, { costUsd: 0.8 }]) {
      const error = await researcher.answer(question({ allowance }), never()).catch((cause) => cause);
      expect(error).toMatchObject({ kind: "budget", usage: { tokens: 0, costUsd: 0 } });
      expect(error.model.use.requests).toBe(0);
    }
    expect(server.requests).toHaveLength(0);
  });

  it("is used up by retries that may have been billed", async () => {
    const server = await serverWith(() => status(200, "{"));
    const { researcher } = researcherAt(server.url, "anthropic");
    const error = await researcher.answer(question({ allowance: { tokens: 30_000 } }), never()).catch((cause) => cause);
    expect(server.requests).toHaveLength(2);
    expect(error).toMatchObject({ kind: "budget" });
    expect(error.usage.tokens).toBeGreaterThan(2 * 8192);
    expect(error.usage.tokens).toBeLessThanOrEqual(30_000);
  });

  it("is enough when the worst case of the question was reserved, exactly", async () => {
    const repair = { answer: "y".repeat(8000), message: "z".repeat(16_000) };
    for (const provider of ["anthropic", "openai", "google", "openai-compatible"]) {
      const server = await serverWith(answers("x"));
      const { researcher } = researcherAt(server.url, provider, { maxOutputTokens: 1000 });
      for (const asked of [question(), question({ repair, round: 2 })]) {
        const allowance = worstCaseOfRequest(1000, price, promptBytesOf(asked.prompt()));
        const found = await researcher.answer({ ...asked, allowance: { ...asked.allowance, ...allowance } }, never());
        expect(textOf(found.raw)).toBe("x");
        const less = { ...asked.allowance, ...allowance, tokens: allowance.tokens - 1 };
        await expect(researcher.answer({ ...asked, allowance: less }, never())).rejects.toMatchObject({ kind: "budget" });
      }
    }
  });
});

describe("a replay", () => {
  it.each(["anthropic", "openai", "google", "openai-compatible"])(
    "of %s gives the answer byte for byte, without a server",
    async (provider) => {
      const server = await serverWith(inTurn(status(503), answer('{"choice":"ä — 𝛼"}')));
      const first = await researcherAt(server.url, provider).researcher.answer(question(), never());
      await server.close();
      const fetch = replayingFetch(first.model!.traffic);
      const second = await researcherAt(server.url, provider, {}, { fetch }).researcher.answer(question(), never());
      expect(textOf(second.raw)).toBe(textOf(first.raw));
      expect(second.usage).toEqual(first.usage);
      expect({ ...second.model!.use, latencyMs: 0 }).toEqual({ ...first.model!.use, latencyMs: 0 });
      const wire = (bytes: Uint8Array) => exchangesOf(bytes).map((exchange) => ({ ...exchange, ms: 0, startedAfterMs: 0 }));
      expect(wire(second.model!.traffic)).toEqual(wire(first.model!.traffic));
    },
  );

  it("of another question says where it differs", async () => {
    const server = await serverWith(answers("x"));
    const { researcher } = researcherAt(server.url, "openai");
    const { model } = await researcher.answer(question(), never());
    const other = researcherAt(server.url, "openai", { maxOutputTokens: 10 }, { fetch: replayingFetch(model!.traffic) });
    await expect(other.researcher.answer(question(), never())).rejects.toThrow(/body of request 1 differs.*8192/);
  });
});

describe("a fallback", () => {
  it("answers where the first model cannot, with what is left; both are on record", async () => {
    const down = await serverWith(() => status(200, "{"));
    const up = await serverWith(answers("from the second"));
    const both = withFallback(researcherAt(down.url, "anthropic", { retries: 0 }).researcher, researcherAt(up.url, "openai").researcher);
    const found = await both.answer(question({ allowance: { tokens: 25_000 } }), never());
    expect(textOf(found.raw)).toBe("from the second");
    expect(found.usage.tokens).toBe(worstInput + 8192 + 150);
    expect(found.model!.use).toMatchObject({ provider: "openai", warnings: [expect.stringMatching(/^unavailable: claude/)] });
    expect(exchangesOf(found.model!.traffic)).toHaveLength(2);
    const dear = await both.answer(question({ allowance: { tokens: 12_000 } }), never()).catch((cause) => cause);
    expect(dear).toMatchObject({ kind: "unavailable", message: expect.stringContaining("the next request may use") });
    expect(up.requests).toHaveLength(1);
  });

  it("that fails as well fails with the use of both", async () => {
    const down = await serverWith(() => status(401));
    const both = withFallback(researcherAt(down.url, "google").researcher, researcherAt(down.url, "openai").researcher);
    const error = await both.answer(question(), never()).catch((cause) => cause);
    expect(error).toMatchObject({ kind: "key_refused", todo: expect.stringContaining("OPENAI_API_KEY") });
    expect(exchangesOf(error.model.traffic)).toHaveLength(2);
  });
});

describe("a table of answers", () => {
  it("answers by the call's number, and costs what its price says", async () => {
    const file = join(place, "answers.json");
    writeFileSync(file, JSON.stringify(["one", { answer: { choice: "two" } }, { match: "choice is missing", answer: "three" }]));
    const settings = modelSettings.parse({ provider: "scripted", model: file });
    const researcher = modelResearcher({ name: "table", settings, key: async () => null, price, redact: (text) => text });
    const said = async (changes: Parameters<typeof question>[0]) => textOf((await researcher.answer(question(changes), never())).raw);
    expect(await said({ call: "c2" })).toBe('{"choice":"two"}');
    expect(await said({ call: "c1" })).toBe("one");
    expect(await said({ call: "c3" })).toBe("one");
    expect(await said({ call: "c1", round: 2, repair: { answer: "one", message: "choice is missing" } })).toBe("three");
    const { usage, model } = await researcher.answer(question(), never());
    const [exchange] = exchangesOf(model!.traffic);
    expect(model!.use.tokens).toMatchObject({ input: Math.ceil(exchange!.requestBody.length / 4), output: 1 });
    expect(usage.costUsd).toBeCloseTo((model!.use.tokens.input * 10 + 100) / 1e6, 12);
  });
});
