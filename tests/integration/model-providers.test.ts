import { afterEach, describe, expect, it } from "vitest";
import { exchangesOf } from "../../src/adapters/researchers/model/traffic.js";
import { modelUse } from "../../src/core/protocol/model-use.js";
import { never, question, researcherAt, schema, secretKey, worstInput } from "../support/model-question.js";
import { answer, answers, type ModelServer, noUsage, startModelServer } from "../support/model-server.js";

let server: ModelServer;
afterEach(() => server.close());

const providers = ["anthropic", "openai", "google", "openai-compatible"] as const;
const paths = {
  anthropic: "/v1/messages",
  openai: "/v1/responses",
  google: "/v1beta/models/gemini-2.5-flash:generateContent",
  "openai-compatible": "/v1/chat/completions",
};

/** Where each format keeps the key, the instructions and the messages. */
const keyHeaders = { anthropic: "x-api-key", openai: "authorization", google: "x-goog-api-key", "openai-compatible": "authorization" };

describe.each(providers)("%s", (provider) => {
  it("sends the prompt and the schema, and books what was told", async () => {
    server = await startModelServer(() => answer('{"choice":"a"}', { input: 1000, cachedInput: 400, output: 50, reasoning: 10 }));
    const { researcher } = researcherAt(server.url, provider, { parameters: { temperature: 0.5 } });
    const found = await researcher.answer(question(), never());

    expect(Buffer.from(found.raw).toString()).toBe('{"choice":"a"}');
    const sent = server.requests[0]!;
    expect(sent.path).toBe(paths[provider]);
    expect(sent.headers[keyHeaders[provider]]).toContain(secretKey);
    for (const words of ["You propose changes.", "Which one?", "choice", "0.5", "8192"]) expect(sent.text).toContain(words);
    const use = modelUse.parse(found.model!.use);
    expect(use.tokens).toEqual({ input: 1000, cachedInput: 400, output: 50, reasoning: 10 });
    // 600 × $10 + 400 × $1 + 50 × $100 a million
    expect(use.costUsd).toBeCloseTo(0.0114, 12);
    expect(found.usage).toEqual({ trials: 0, costUsd: use.costUsd, tokens: 1050, computeMs: 0 });
    expect(use).toMatchObject({
      provider,
      requests: 1,
      billedAtWorst: 0,
      warnings: [],
      parameters: { temperature: 0.5, maxOutputTokens: 8192 },
    });
  });

  it("asks for a repair after the answer that needs it", async () => {
    server = await startModelServer(answers("fine"));
    const { researcher } = researcherAt(server.url, provider);
    await researcher.answer(question({ repair: { answer: "the first answer", message: "choice is missing" }, round: 2 }), never());
    const { text } = server.requests[0]!;
    const order = ["Which one?", "the first answer", "choice is missing"].map((words) => text.indexOf(words));
    expect(order.every((at) => at > 0)).toBe(true);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(text).toMatch(/"role":"(assistant|model)"/);
  });

  it("bills the worst case where the server does not tell", async () => {
    server = await startModelServer(() => noUsage("an answer"));
    const { researcher } = researcherAt(server.url, provider);
    const found = await researcher.answer(question(), never());
    expect(Buffer.from(found.raw).toString()).toBe("an answer");
    expect(found.model!.use).toMatchObject({ requests: 1, billedAtWorst: 1 });
    expect(found.usage.tokens).toBe(worstInput + 8192);
    expect(found.usage.costUsd).toBeCloseTo((worstInput * 10 + 8192 * 100) / 1e6, 12);
  });

  it("records what went over the wire, and no key", async () => {
    server = await startModelServer(() => answer(`I was told ${secretKey}, and the password hunter22`));
    const redact = (text: string): string => text.replaceAll("hunter22", "[redacted]");
    const { researcher } = researcherAt(server.url, provider, {}, { redact });
    const found = await researcher.answer(question(), never());
    const traffic = Buffer.from(found.model!.traffic).toString();
    expect(Buffer.from(found.raw).toString()).toBe("I was told [key], and the password [redacted]");
    expect(traffic).not.toContain(secretKey);
    expect(traffic).not.toContain("hunter22");
    const [exchange] = exchangesOf(found.model!.traffic);
    expect(exchange).toMatchObject({ status: 200, method: "POST", error: null, requestBody: server.requests[0]!.text });
    expect(exchange!.url).toBe(`${server.url}${paths[provider]}`);
    expect(exchange!.responseHeaders["x-request-id"]).toBe("req-1");
    expect(Object.keys(exchange!.requestHeaders)).not.toContain(keyHeaders[provider]);
  });

  it("passes on an effort of reasoning", async () => {
    server = await startModelServer(answers("fine"));
    const model = provider === "openai" ? { model: "gpt-5" } : {};
    await researcherAt(server.url, provider, { reasoningEffort: "low", ...model }).researcher.answer(question(), never());
    expect(server.requests[0]!.text).toMatch(/"effort":"low"|"reasoning_effort":"low"|"thinkingBudget":2048/);
  });

  it("takes an empty answer for an answer", async () => {
    server = await startModelServer(answers(""));
    const found = await researcherAt(server.url, provider).researcher.answer(question(), never());
    expect(found.raw).toHaveLength(0);
    expect(found.model!.use).toMatchObject({ billedAtWorst: 0 });
  });
});

it("sends the schema where each provider looks for it", async () => {
  server = await startModelServer(answers("fine"));
  for (const provider of providers) await researcherAt(server.url, provider).researcher.answer(question(), never());
  const [anthropic, openai, google, compatible] = server.requests.map(({ body }) => body!);
  expect(anthropic).toMatchObject({ output_config: { format: { type: "json_schema", schema } } });
  expect(openai).toMatchObject({ text: { format: { type: "json_schema", name: "proposal", strict: true, schema } }, store: false });
  expect(google).toMatchObject({ generationConfig: { responseMimeType: "application/json", responseSchema: { required: ["choice"] } } });
  expect(compatible).toMatchObject({ response_format: { type: "json_schema", json_schema: { name: "proposal", schema } } });
});

it("reads the answer of a model that gives it as the input of a tool", async () => {
  server = await startModelServer(answers('{"choice":"b"}'));
  const found = await researcherAt(server.url, "anthropic", { model: "claude-3-7-sonnet-20250219" }).researcher.answer(question(), never());
  expect(server.requests[0]!.body).toMatchObject({ tools: [{ name: "json", input_schema: schema }] });
  expect(Buffer.from(found.raw).toString()).toBe('{"choice":"b"}');
});

it("sends no key where none is set, and none is needed", async () => {
  server = await startModelServer(answers("fine"));
  await researcherAt(server.url, "openai-compatible", {}, { key: async () => null }).researcher.answer(question(), never());
  expect(server.requests[0]!.headers["authorization"]).toBeUndefined();
});

it("does not ask without a key that is needed", async () => {
  server = await startModelServer(answers("fine"));
  const { researcher } = researcherAt(server.url, "google", {}, { key: async () => " " });
  await expect(researcher.answer(question(), never())).rejects.toMatchObject({
    kind: "key_refused",
    todo: expect.stringContaining("GEMINI_API_KEY"),
  });
  expect(server.requests).toHaveLength(0);
});
