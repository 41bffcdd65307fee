import { afterEach, describe, expect, it } from "vitest";
import { exchangesOf } from "../../src/adapters/researchers/model/traffic.js";
import type { ResearcherFailedError } from "../../src/core/ports/researcher.js";
import { modelUse } from "../../src/core/protocol/model-use.js";
import { never as noSignal, question, researcherAt, secretKey, worstInput } from "../support/model-question.js";
import * as serve from "../support/model-server.js";

let server: serve.ModelServer;
afterEach(() => server.close());

async function failureWith(behaviour: serve.Behaviour, changes: Record<string, unknown> = {}, provider = "openai-compatible") {
  server = await serve.startModelServer(() => behaviour);
  const asked = researcherAt(server.url, provider, changes);
  const error: ResearcherFailedError = await asked.researcher.answer(question(), noSignal()).then(
    () => expect.fail("an error was expected"),
    (cause) => cause,
  );
  return { error, waits: asked.waits };
}

const error = (message: string, code?: string) => ({ error: { message, type: "invalid_request_error", code } });
const googleQuota = (id: string) => ({
  error: {
    code: 429,
    status: "RESOURCE_EXHAUSTED",
    message: "You exceeded your current quota, please check your plan and billing details.",
    details: [{ violations: [{ quotaId: id }] }, { retryDelay: "37s" }],
  },
});

/** What the server does, what is made of it, how many requests were made, and how many of them are billed at the worst case. */
const table: readonly (readonly [string, serve.Behaviour, kind: string, requests: number, billed: number])[] = [
  ["401", serve.status(401), "key_refused", 1, 0],
  ["403", serve.status(403), "key_refused", 1, 0],
  ["400 for a key", serve.status(400, error("API key not valid. Please pass a valid API key.")), "key_refused", 1, 0],
  ["404 for a model", serve.status(404, error("The model `x` does not exist", "model_not_found")), "model_unknown", 1, 0],
  ["429 without Retry-After", serve.status(429), "unavailable", 3, 0],
  ["429 with Retry-After", serve.status(429, {}, { "retry-after": "7" }), "unavailable", 3, 0],
  ["429 that asks for an hour", serve.status(429, {}, { "retry-after": "3600" }), "unavailable", 1, 0],
  [
    "429 that speaks of billing",
    serve.status(429, error("Rate limit reached. Add a payment method at example.com/account/billing.")),
    "unavailable",
    3,
    0,
  ],
  ["429 for a quota", serve.status(429, error("You exceeded your current quota", "insufficient_quota")), "quota_exhausted", 1, 0],
  ["429 for a quota of the day", serve.status(429, googleQuota("GenerateRequestsPerDayPerProject")), "quota_exhausted", 1, 0],
  ["429 for a quota of the minute", serve.status(429, googleQuota("GenerateRequestsPerMinutePerProject")), "unavailable", 3, 0],
  ["402", serve.status(402), "quota_exhausted", 1, 0],
  ["400 for a balance", serve.status(400, error("Your credit balance is too low to access the API")), "quota_exhausted", 1, 0],
  ["500", serve.status(500), "unavailable", 3, 0],
  ["503", serve.status(503), "unavailable", 3, 0],
  ["529", serve.status(529), "unavailable", 3, 0],
  ["HTML with 502", serve.html(502), "unavailable", 3, 0],
  ["HTML instead of JSON", serve.html(), "unavailable", 3, 3],
  ["a wrong content type", serve.wrongContentType(), "unavailable", 3, 3],
  ["JSON that breaks off", serve.status(200, '{"id":'), "unavailable", 3, 3],
  ["JSON that is no answer", serve.status(200, { hello: "world" }), "unavailable", 3, 3],
  ["half a reply", serve.halfReply("an answer that is cut"), "unavailable", 3, 3],
  ["a reset before the reply", serve.resets, "unavailable", 3, 3],
  ["a reset in the middle", serve.resetsMidway, "unavailable", 3, 3],
  ["no answer ever", serve.never, "unavailable", 3, 3],
  ["headers and no body", serve.headersOnly, "unavailable", 3, 3],
  ["a redirect", serve.status(307, "", { location: "http://127.0.0.1:1/v1" }), "unavailable", 1, 0],
  [
    "a long prompt",
    serve.status(400, error("This model's maximum context length is 8192 tokens", "context_length_exceeded")),
    "context_overflow",
    1,
    0,
  ],
  ["413", serve.status(413), "context_overflow", 1, 0],
  ["another 400", serve.status(400, error("messages: roles must alternate")), "request_refused", 1, 0],
  ["another 400 that names a parameter", serve.status(400, error("reading the schema took too long")), "request_refused", 1, 0],
  ["418", serve.status(418), "request_refused", 1, 0],
];

describe.each(table)("%s", (_name, behaviour, kind, requests, billed) => {
  it(`is ${kind} after ${requests} requests, ${billed} of them billed`, async () => {
    const { error, waits } = await failureWith(behaviour, { timeoutMs: 300 });
    expect(error).toMatchObject({ name: "ResearcherFailedError", kind });
    expect(error.todo).not.toBe("");
    expect(server.requests).toHaveLength(requests);
    expect(waits).toHaveLength(requests - 1);
    const use = modelUse.parse(error.model!.use);
    expect(use).toMatchObject({ requests, billedAtWorst: billed });
    const bytes = worstInput;
    expect(error.usage.tokens).toBe(billed * (bytes + 8192));
    expect(error.usage.costUsd).toBeCloseTo((billed * (bytes * 10 + 8192 * 100)) / 1e6, 10);
    expect(exchangesOf(error.model!.traffic)).toHaveLength(requests);
    expect(Buffer.from(error.model!.traffic).toString() + error.message + error.todo).not.toContain(secretKey);
  });
});

it("waits longer each time, by the seed, and as long as the server asks", async () => {
  const first = await failureWith(serve.status(503), { retries: 8 });
  expect(first.waits).toHaveLength(8);
  for (const [index, ms] of first.waits.entries()) {
    const full = Math.min(60_000, 1000 * 2 ** index);
    expect(ms).toBeGreaterThanOrEqual(full / 2);
    expect(ms).toBeLessThanOrEqual(full);
  }
  await server.close();
  expect((await failureWith(serve.status(503), { retries: 8 })).waits).toEqual(first.waits);
  await server.close();
  expect((await failureWith(serve.status(429, {}, { "retry-after": "7" }))).waits).toEqual([7000, 7000]);
  await server.close();
  expect((await failureWith(serve.status(429, {}, { "retry-after-ms": "120" }))).waits).toEqual([120, 120]);
  await server.close();
  expect((await failureWith(serve.status(429, googleQuota("PerMinute")))).waits).toEqual([37_000, 37_000]);
  await server.close();
  const date = new Date(Date.now() + 90_000).toUTCString();
  const [asked] = (await failureWith(serve.status(503, {}, { "retry-after": date }))).waits;
  expect(asked).toBeGreaterThan(80_000);
  expect(asked).toBeLessThanOrEqual(90_000);
});

it("says what came in place of JSON, and names the base URL", async () => {
  const { error } = await failureWith(serve.html());
  expect(error.message).toContain("text/html");
  expect(error.message).toContain("Please sign in");
  expect(error.todo).toContain(server.url);
});

it("reads no reply of more than 32 MiB, and does not pay for it twice", async () => {
  const { error } = await failureWith(serve.huge(33));
  expect(error).toMatchObject({ kind: "unavailable", message: expect.stringContaining("33554432") });
  expect(server.requests).toHaveLength(1);
  expect(error.model!.use.billedAtWorst).toBe(1);
  expect(error.model!.traffic.byteLength).toBeLessThan(10_000);
});

it("recovers from failures on the way, and bills each of them", async () => {
  server = await serve.startModelServer(serve.inTurn(serve.status(503), serve.halfReply("x"), serve.answer("at last")));
  const found = await researcherAt(server.url, "openai-compatible").researcher.answer(question(), noSignal());
  expect(Buffer.from(found.raw).toString()).toBe("at last");
  expect(found.model!.use).toMatchObject({ requests: 3, billedAtWorst: 1 });
  expect(found.usage.tokens).toBe(150 + 8192 + worstInput);
});

it("takes a server that is not there for unavailable, at no cost", async () => {
  server = await serve.startModelServer(serve.answers("x"));
  const { url } = server;
  await server.close();
  const error = await researcherAt(url, "anthropic")
    .researcher.answer(question(), noSignal())
    .catch((cause) => cause);
  expect(error).toMatchObject({ kind: "unavailable", usage: { costUsd: 0, tokens: 0 } });
  expect(error.message).toContain("ECONNREFUSED");
  expect(error.model.use).toMatchObject({ requests: 3, billedAtWorst: 0 });
});

it("stops at once when nobody waits any more, with the reason", async () => {
  server = await serve.startModelServer(() => serve.never);
  const stop = new AbortController();
  const asked = researcherAt(server.url, "openai").researcher.answer(question(), stop.signal);
  setTimeout(() => stop.abort("leaving"), 50);
  await expect(asked).rejects.toBe("leaving");
  await server.close();
  server = await serve.startModelServer(() => serve.status(503));
  const other = new AbortController();
  const waiting = researcherAt(server.url, "openai", {}, { sleep: undefined as never }).researcher.answer(question(), other.signal);
  setTimeout(() => other.abort("leaving"), 100);
  await expect(waiting).rejects.toBe("leaving");
});
