import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { replayRecorded } from "../../src/app/replay.js";
import { secretsOf } from "../../src/app/secrets.js";
import { verifyRun } from "../../src/app/verify.js";
import { parseEvent, type StoredRunEvent } from "../../src/core/protocol/events.js";
import { commandLineWith, type Driven, type Ended } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack } from "../support/lab.js";
import { answer, type Behaviour, type ModelRequest, type ModelServer, noUsage, startModelServer, status } from "../support/model-server.js";
import { smallAgent } from "../support/small-agent.js";

let lab: Lab;
let server: ModelServer;

beforeEach(() => {
  lab = new Lab();
  lab.write(numberPack({ seed: 1, words: [], rule: "any", gate: lab.gate }));
  mkdirSync(join(lab.folder, "agent"));
  writeFileSync(join(lab.folder, "agent", "agent.mjs"), smallAgent);
});
afterEach(async () => {
  await server.close();
  lab.remove();
});

const key = "sk-test-0123456789abcdef";
const keys = { ANTHROPIC_API_KEY: key, OPENAI_API_KEY: key, MODEL_KEY: key };
const price = { input: 10, output: 100 };

interface Given {
  readonly provider?: string;
  readonly command: string;
  readonly minutes?: number;
}

async function serves(respond: (request: ModelRequest, index: number) => Behaviour): Promise<void> {
  server = await startModelServer(respond);
}

function configure({ provider = "anthropic", command, minutes = 2 }: Given): void {
  const model = { provider, model: "m", base_url: `${server.url}/v1`, key_variable: "MODEL_KEY", max_output_tokens: 500, price };
  const agent = { command, model: "fast", turn_minutes: minutes, mounts: [join(lab.folder, "agent")] };
  writeFileSync(join(lab.project, "trialist.config.yaml"), JSON.stringify({ models: { fast: model }, agents: { small: agent } }));
}

const says = (vendor: string, ...steps: readonly string[]): string =>
  `node ${join(lab.folder, "agent", "agent.mjs")} ${vendor} ${steps.join(" then ")}`;

function started(...more: readonly string[]): Driven {
  return trialist("run", lab.pack, "--organization", "sessions", "--researcher", "agent:small", "--name", "run", ...more);
}

function trialist(...words: readonly string[]): Driven {
  return commandLineWith(lab, keys, ...words);
}

async function ended(...more: readonly string[]): Promise<Ended> {
  return await started(...more).ended;
}

function recorded(): StoredRunEvent[] {
  const run = inspectRun(new Project(lab.project), "run");
  const events = [...run.ledger.read()].map(parseEvent);
  run.close();
  return events;
}

const reasons = (): string[] => recorded().flatMap((event) => (event.type === "session.closed" ? [event.data.reason] : []));
const stateOf = (): ReturnType<typeof inspectRun>["state"] => inspectRun(new Project(lab.project), "run").state;

/** What the agent found out and told its model. */
function found(): Record<string, unknown> {
  const text = server.requests.map((request) => /FOUND ([A-Za-z0-9+/=]+)/.exec(request.text)?.[1]).find((each) => each !== undefined);
  return JSON.parse(Buffer.from(text ?? "", "base64").toString("utf8")) as Record<string, unknown>;
}

/** All files below a folder whose bytes hold a text. */
function holding(folder: string, text: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return entries.map((entry) => join(entry.parentPath, entry.name)).filter((path) => readFileSync(path).includes(text));
}

describe("a coding agent in a long session", () => {
  it.each([
    ["anthropic", "anthropic", "/v1/messages"],
    ["openai-compatible", "openai", "/v1/chat/completions"],
    ["openai", "responses", "/v1/responses"],
  ])("works over its vendor's wire format with a model of %s, is measured by the same rules and billed", async (provider, vendor, path) => {
    await serves(() => answer("try 300"));
    configure({ provider, command: says(vendor, "read", "ask what-now", "submit 300") });
    const { code, stderr } = await ended("--max-trials", "1", "--max-cost", "5");
    expect([code, stderr]).toEqual([0, expect.stringContaining("t1")]);
    const events = recorded();
    expect(of(events, "trial.ended").map(({ data }) => `${data.trial} ${data.status}`)).toEqual(["t0 keep", "t1 keep"]);
    expect(of(events, "session.tool_called").map(({ data }) => data.tool)).toEqual(
      expect.arrayContaining(["read_environment", "submit_trial"]),
    );
    const [turn] = of(events, "session.turn_ended");
    expect(turn?.data).toMatchObject({ usage: { tokens: 150 }, model: { provider, model: "m", requests: 1, billedAtWorst: 0 } });
    expect(turn?.data.model?.warnings).toEqual(["asked for the model another"]);
    expect(stateOf().budget.spent.costUsd).toBeCloseTo((120 * price.input + 30 * price.output) / 1e6, 10);
    expect(server.requests[0]).toMatchObject({ path, body: { model: "m" } });
    const headers = server.requests[0]?.headers ?? {};
    expect(headers[vendor === "anthropic" ? "x-api-key" : "authorization"]).toContain(key);
    expect(JSON.stringify(headers)).not.toContain("trialist-adds-the-key");
    const project = new Project(lab.project);
    expect(await verifyRun(project, "run")).toMatchObject({ ok: true });
    expect(await replayRecorded(project, "run", null, secretsOf({}))).toMatchObject({ difference: null });
    expect(await lab.leftovers()).toEqual([]);
  });

  it("sees no key, no network, no ledger and nothing that measures it", async () => {
    const outside: Server = createServer((socket) => socket.end("here"));
    await new Promise<void>((resolve) => outside.listen(0, "0.0.0.0", resolve));
    const { port } = outside.address() as { port: number };
    try {
      await serves(() => answer("thank you"));
      const paths = [lab.project, lab.pack, lab.cache, "/root", "/home", join(lab.pack, "evaluate.sh")];
      configure({ command: says("anthropic", `look ${port} ${paths.join(" ")}`, "submit 300") });
      expect((await ended("--max-trials", "1")).code).toBe(0);
    } finally {
      outside.close();
    }
    const { files, network, paths, env, ...rest } = found() as {
      files: Record<string, string>;
      network: string[];
      paths: Record<string, unknown>;
      env: Record<string, string>;
    };
    expect(network).toEqual(["ECONNREFUSED", "ENETUNREACH"]);
    expect(paths).toEqual(Object.fromEntries(Object.keys(paths).map((path) => [path, "ENOENT"])));
    expect(Object.keys(files)).toEqual(
      expect.arrayContaining(["/trialist/desk/main.sh", "/trialist/desk/TASK.md", "/trialist/desk/mcp.json"]),
    );
    expect(Object.keys(files).filter((path) => /evaluate|ledger|sqlite/.test(path))).toEqual([]);
    expect(env["HOME"]).toBe("/trialist/desk");
    expect(JSON.stringify([files, env, rest])).not.toContain(key);
    expect(JSON.stringify([files, env])).toContain("trialist-adds-the-key");
    expect([...holding(lab.project, key), ...holding(lab.cache, key)]).toEqual([]);
  });

  it("is held to its model, to tools of its own and to what a request holds", async () => {
    await serves(() => noUsage("done"));
    const tools = [
      { type: "web_search_20250305", name: "web_search" },
      { name: "mine", input_schema: { type: "object" } },
    ];
    configure({
      command: [
        says(
          "anthropic",
          `ask search '${JSON.stringify({ tools, tool_choice: { type: "auto" }, mcp_servers: [{ url: "http://x" }], model: "dearest" })}'`,
        ),
        says("anthropic", "together 3"),
        says("anthropic", `ask picture '${JSON.stringify({ system: [{ type: "image", source: { type: "url", url: "http://x/y" } }] })}'`),
      ].join(" && "),
    });
    await ended("--max-trials", "1", "--max-cost", "5");
    expect(server.requests[0]?.body).toMatchObject({ model: "m", tools: [{ name: "mine" }], max_tokens: 1000 });
    expect(server.requests[0]?.body).not.toHaveProperty("mcp_servers");
    expect(server.requests.some(({ text }) => text.includes("picture"))).toBe(false);
    expect(reasons()[0]).toMatch(/exit code 7.*400.*images and files are not served/s);
    const turns = of(recorded(), "session.turn_ended");
    expect(turns[0]?.data.model).toMatchObject({ billedAtWorst: 1, tokens: { output: 1000 } });
    expect(turns[0]?.data.model?.warnings).toEqual([
      "asked for the model dearest",
      "went without mcp_servers",
      "went without 1 tools that the provider would perform",
    ]);
    expect(turns.filter(({ data }) => data.session === "s1").map(({ data }) => data.turn)).toEqual([1, 2, 3, 4]);
  });

  it("is refused what cannot be read, and nobody else is troubled by it", async () => {
    await serves(() => noUsage("done"));
    const sends = `const deep = "[".repeat(20000) + "]".repeat(20000);
      const bad = [["//", "{}"], ["/v1/messages", '{"model":{"toString":1,"valueOf":1}}'], ["/v1/messages", '{"messages":' + deep + "}"]];
      (async () => {
        for (const [path, body] of bad) {
          const { status } = await fetch(process.env.ANTHROPIC_BASE_URL + path, { method: "POST", body });
          if (status < 400 || status >= 500) process.exit(9);
        }
      })();`;
    const program = join(lab.folder, "agent", "sends.cjs");
    writeFileSync(program, sends);
    configure({ command: `node ${program}` });
    await ended("--max-trials", "1", "--max-cost", "5");
    expect(new Set(reasons())).toEqual(new Set(["the agent ended: exit code 0"]));
    expect(server.requests).toHaveLength(0);
  });

  it("reads what a stream of events says it used, and hands the stream on", async () => {
    const events = [
      {
        type: "message_start",
        message: { usage: { input_tokens: 100, cache_creation_input_tokens: 10, cache_read_input_tokens: 50, output_tokens: 1 } },
      },
      { type: "content_block_delta", delta: { type: "text_delta", text: "hello" } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 40 } },
      { type: "message_stop" },
    ];
    const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
    await serves(() => ({ do: "send", status: 200, headers: { "content-type": "text/event-stream" }, body }));
    configure({ command: `${says("anthropic", `ask hello '{"stream":true}'`)} >stream; grep -c ^data: stream >&2; exit 5` });
    await ended("--max-trials", "1", "--max-cost", "5");
    expect(of(recorded(), "session.turn_ended")[0]?.data.model).toMatchObject({
      tokens: { input: 160, cachedInput: 50, output: 40 },
      billedAtWorst: 0,
    });
    expect(reasons()[0]).toBe("the agent ended: exit code 5. It said: 4");
  });

  it("ends at its wall limit, and clean when the budget does not cover another request", async () => {
    await serves(() => answer("go on"));
    configure({ command: says("anthropic", "hang"), minutes: 0.03 });
    expect((await ended("--max-trials", "1")).code).toBe(0);
    expect(reasons()).toEqual(Array(3).fill("the agent reached its limit of 0.03 minutes"));
    expect(stateOf().reason).toBe("3 sessions in a row handed nothing in");

    configure({ command: says("anthropic", "insist") });
    const capped = trialist(
      "run",
      lab.pack,
      "--organization",
      "sessions",
      "--researcher",
      "agent:small",
      "--name",
      "capped",
      "--max-tokens",
      "6000",
    );
    expect((await capped.ended).code).toBe(0);
    const { state } = inspectRun(new Project(lab.project), "capped");
    expect(state.budget.spent.tokens).toBeGreaterThan(149);
    expect(state.budget.spent.tokens).toBeLessThanOrEqual(6000);
    expect(await lab.leftovers()).toEqual([]);
  });

  it("is ended by the death of trialist, and another session goes on", async () => {
    await serves((request) => answer(request.text));
    configure({
      command: `[ -e ${join(lab.folder, "agent", "second")} ] && exec ${says("anthropic", "submit 500")}; ${says("anthropic", "submit 300", "ask ready", "hang")}`,
    });
    const first = started("--max-trials", "2");
    await expect.poll(() => server.requests.length, { timeout: 20_000 }).toBe(1);
    first.child.kill("SIGKILL");
    await first.ended;
    expect(await lab.leftovers()).toEqual([]);
    writeFileSync(join(lab.folder, "agent", "second"), "");
    const resumed = await trialist("resume", "run", "--frozen").ended;
    expect([resumed.code, resumed.stderr]).toEqual([0, expect.anything()]);
    const events = recorded();
    expect(of(events, "session.interrupted").map(({ data }) => [data.session, data.reason])).toEqual([
      ["s1", "the process that drove it ended"],
    ]);
    expect(
      of(events, "session.opened")
        .map(({ data }) => [data.session, data.base, data.reopens])
        .slice(0, 2),
    ).toEqual([
      ["s1", "t0", null],
      ["s2", "t1", "s1"],
    ]);
    expect(of(events, "trial.ended").map(({ data }) => data.trial)).toEqual(["t0", "t1", "t2"]);
    expect(await verifyRun(new Project(lab.project), "run")).toMatchObject({ ok: true });
    expect(await lab.leftovers()).toEqual([]);
  });

  it("is stopped when its run is paused, and suspends the run when its model cannot be asked", async () => {
    await serves(() => answer("ready"));
    configure({ command: says("anthropic", "ask ready", "hang") });
    const paused = started("--max-trials", "1");
    await expect.poll(() => server.requests.length, { timeout: 20_000 }).toBe(1);
    paused.child.kill("SIGINT");
    await paused.ended;
    expect(of(recorded(), "session.interrupted").map(({ data }) => data.reason)).toEqual(["the run is paused"]);
    expect(await lab.leftovers()).toEqual([]);

    await server.close();
    await serves(() => status(401, { error: { message: `${key} is no key` } }));
    configure({ command: says("anthropic", "ask anything", "hang") });
    const refused = await trialist("run", lab.pack, "--organization", "sessions", "--researcher", "agent:small", "--name", "refused").ended;
    expect([refused.code, refused.stderr]).toEqual([4, expect.not.stringContaining(key)]);
    expect(inspectRun(new Project(lab.project), "refused").state.phase).toBe("suspended");
    expect([...holding(lab.project, key), ...holding(lab.cache, key)]).toEqual([]);
  });

  it("is refused where it would not be held: another organization, no sandbox, a mount that shows the ledger", async () => {
    await serves(() => answer("never"));
    configure({ command: "true" });
    const refusal = async (...words: string[]): Promise<string> => (await trialist("run", lab.pack, ...words).ended).stderr;
    expect(await refusal("--researcher", "agent:small")).toContain("--organization sessions for agent:small");
    expect(await refusal("--organization", "sessions", "--researcher", "agent:small", "--sandbox", "none")).toContain("--sandbox none");
    expect(await refusal("--organization", "sessions", "--researcher", "agent:nobody")).toContain("agent:small");
    const file = join(lab.project, "trialist.config.yaml");
    writeFileSync(file, readFileSync(file, "utf8").replace(join(lab.folder, "agent"), lab.folder));
    expect(await refusal("--organization", "sessions", "--researcher", "agent:small")).toContain("a folder apart from the project");
  });
});
