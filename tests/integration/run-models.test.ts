import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { replayRecorded } from "../../src/app/replay.js";
import { secretsOf } from "../../src/app/secrets.js";
import { verifyRun } from "../../src/app/verify.js";
import { parseEvent, type StoredRunEvent } from "../../src/core/protocol/events.js";
import { commandLineWith, type Ended } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack, proposes, scoring } from "../support/lab.js";
import { answer, type Behaviour, type ModelRequest, type ModelServer, never, startModelServer, status } from "../support/model-server.js";

const secretKey = "sk-planted-4711-secret-value";
const seed = 11;
let lab: Lab;
let server: ModelServer;

beforeEach(() => {
  lab = new Lab();
});
afterEach(async () => {
  await server.close();
  lab.remove();
});

/** A scripted proposal as models give it. */
const proposal = (files: Readonly<Record<string, string | null>>, more: object = {}): string =>
  JSON.stringify({ plan: { hypothesis: "as the test has it", expected_change: null, responds_to: [], ...more }, files, edits: [] });
const edit = (...edits: readonly { path: string; search: string; replace: string }[]): string =>
  JSON.stringify({ plan: { hypothesis: "an edit", expected_change: 1, responds_to: [] }, files: [], edits });

async function serve(respond: (request: ModelRequest, index: number) => Behaviour): Promise<void> {
  server = await startModelServer(respond);
}

const texts = (...each: readonly string[]) => serve((_request, index) => answer(each[index % each.length] ?? ""));

const keyVariables = {
  anthropic: "ANTHROPIC_API_KEY",
  openai: "OPENAI_API_KEY",
  google: "GEMINI_API_KEY",
  "openai-compatible": "MODEL_KEY",
};
type Provider = keyof typeof keyVariables;
const basePaths: Record<Provider, string> = { anthropic: "/v1", openai: "/v1", google: "/v1beta", "openai-compatible": "/v1" };

/** Runs the command line with the key in the environment. */
function trialist(...words: readonly string[]): Promise<Ended> {
  return commandLineWith(lab, Object.fromEntries(Object.values(keyVariables).map((name) => [name, secretKey])), ...words).ended;
}

function runWith(provider: Provider, ...more: readonly string[]): Promise<Ended> {
  const model = ["--researcher", provider, "--model", "m", "--base-url", `${server.url}${basePaths[provider]}`, "--allow-unknown-price"];
  return trialist("run", lab.pack, "--name", "run", "--seed", String(seed), "--drafts", "200", ...model, ...more);
}

function recorded(name = "run"): { events: StoredRunEvent[]; state: ReturnType<typeof inspectRun>["state"] } {
  const run = inspectRun(new Project(lab.project), name);
  const events = [...run.ledger.read()].map(parseEvent);
  run.close();
  return { events, state: run.state };
}

const trialsOf = (events: readonly StoredRunEvent[]): string[] =>
  of(events, "trial.ended").map(({ data }) => `${data.trial} ${data.status}`);

describe("a run whose researcher is a language model", () => {
  const words = [
    proposal({ "main.sh": scoring(300)["main.sh"] ?? "" }),
    proposal({ "main.sh": "exit 1\n" }),
    proposal({ "main.sh": scoring(200)["main.sh"] ?? "" }),
  ];

  it("ends as the same run with a command researcher, over every provider's wire format, and is replayed to the byte", async () => {
    lab.write(numberPack({ seed, words: [proposes(scoring(300)), proposes({ "main.sh": "exit 1\n" }), proposes(scoring(200))] }));
    await texts(...words);
    const command = await trialist(
      ...["run", lab.pack, "--name", "command", "--seed", String(seed), "--drafts", "200"],
      ...["--researcher", "command:sh answer.sh", "--max-trials", "3"],
    );
    expect(command.code).toBe(0);
    const wanted = recorded("command");
    for (const provider of Object.keys(keyVariables) as Provider[]) {
      await server.close();
      await texts(...words);
      const ended = await runWith(provider, "--name", provider, "--max-trials", "3");
      expect([provider, ended.code, ended.stderr]).toEqual([provider, 0, expect.anything()]);
      const { events, state } = recorded(provider);
      expect(trialsOf(events)).toEqual(trialsOf(wanted.events));
      expect(state.leader).toEqual(wanted.state.leader);
      expect(state.budget.spent.trials).toBe(3);
      expect(state.budget.reserved).toEqual({ trials: 0, costUsd: 0, tokens: 0, computeMs: 0 });
      expect(state.budget.spent.tokens).toBe(3 * 150);
      expect(of(events, "call.answered").map(({ data }) => data.model?.provider)).toEqual([provider, provider, provider]);
      const project = new Project(lab.project);
      expect(await verifyRun(project, provider)).toMatchObject({ ok: true });
      const replayed = await replayRecorded(project, provider, null, secretsOf({ KEY: secretKey }));
      expect(replayed).toMatchObject({ difference: null, reanswered: 3, taken: 0, otherViews: 0 });
      expect(replayed.chain.replayed).toBe(replayed.chain.recorded);
    }
  });

  it("refuses bad replies with what was wrong, which the next request says, and goes on", async () => {
    const good = (value: number): string => proposal({ "main.sh": scoring(value)["main.sh"] ?? "" });
    const table: readonly (readonly [what: string, reply: string, code: string, said: string])[] = [
      ["empty", "", "empty_answer", "was empty"],
      ["a refusal", "I cannot help with that.", "not_json", "one JSON document"],
      ["another shape", '{"name": "x"}', "plan_missing files_missing", "hypothesis"],
      ["a 10 MB string", proposal({ "main.sh": "x".repeat(10 * 2 ** 20) }), "too_long", "bytes"],
      ["ids that do not exist", proposal({ "main.sh": "x\n" }, { responds_to: ["t77"] }), "unknown_trial", "t77"],
      [
        "ids nested without end",
        `{"plan":{"hypothesis":"h","responds_to":${"[".repeat(20_000)}${"]".repeat(20_000)}},"files":{"main.sh":"x"}}`,
        "unknown_trial",
        "no text",
      ],
      ["a path outside", proposal({ "../../x": "x" }), "path_outside", "../../x"],
      ["an absolute path", proposal({ "/etc/passwd": "x" }), "path_outside", "/etc/passwd"],
      ["a file that may not be edited", proposal({ "evaluate.sh": "exit 0\n" }), "not_editable", "evaluate.sh"],
      ["a binary file", proposal({ "main.sh": "a\u0000b" }), "file_not_text", "NUL"],
      ["an edit that matches twice", edit({ path: "main.sh", search: "T", replace: "U" }), "edit_ambiguous", "occurs"],
      ["an edit of what is not there", edit({ path: "main.sh", search: "no such", replace: "" }), "edit_no_match", "does not occur"],
      ["an edit identical to the parent", edit({ path: "main.sh", search: "echo", replace: "echo" }), "unchanged", "the same"],
    ];
    lab.write(numberPack({ seed, words: [], rule: "any" }));
    // Every bad reply is the first round of a call, whose second round is good.
    await serve((_request, index) => answer(index % 2 === 0 ? (table[index / 2]?.[1] ?? "") : good(200 + index)));
    const ended = await runWith("openai-compatible", "--max-trials", String(table.length));
    expect(ended.code).toBe(0);
    const { events } = recorded();
    const refused = of(events, "call.refused").map(
      ({ data }) => `${data.violations.map(({ code }) => code).join(" ")}${data.final ? " final" : ""}`,
    );
    expect(refused).toEqual(table.map(([, , code]) => code));
    for (const [index, [what, , , said]] of table.entries())
      expect([what, server.requests[index * 2 + 1]?.text]).toEqual([what, expect.stringContaining(said)]);
    expect(trialsOf(events).filter((line) => line.endsWith("keep"))).toHaveLength(table.length + 1);
  });

  it.each([
    ["quota_exhausted", status(429, { error: { code: "insufficient_quota", message: "You exceeded your current quota" } }), 1],
    ["key_refused", status(401, { error: { message: "Incorrect API key provided" } }), 1],
    ["model_unknown", status(404, { error: { message: "The model m does not exist" } }), 1],
    ["context_overflow", status(400, { error: { code: "context_length_exceeded", message: "maximum context length" } }), 1],
  ] as const)("suspends at %s with its call open, says what to do, and asks the same again on resume", async (kind, bad, asked) => {
    lab.write(numberPack({ seed, words: [], rule: "any" }));
    let isBad = true;
    await serve((_request, index) => (isBad ? bad : answer(proposal({ "main.sh": scoring(300 + index)["main.sh"] ?? "" }))));
    const ended = await runWith("openai-compatible", "--max-trials", "2");
    expect(ended.code).toBe(4);
    expect(server.requests).toHaveLength(asked);
    const { state, events } = recorded();
    expect(state.phase).toBe("suspended");
    expect(Object.keys(state.calls)).toEqual(["c1"]);
    expect(of(events, "call.failed").map(({ data }) => [data.kind, data.final])).toEqual([[kind, false]]);
    expect(state.todo).toMatch(/trialist resume run/);
    expect(of(events, "trial.ended").map(({ data }) => data.trial)).toEqual(["t0"]);

    isBad = false;
    expect((await trialist("resume", "run")).code).toBe(0);
    expect(server.requests[1]?.text).toBe(server.requests[0]?.text);
    const after = recorded();
    expect(trialsOf(after.events)).toEqual(["t0 keep", "t1 keep", "t2 keep"]);
    expect(await verifyRun(new Project(lab.project), "run")).toMatchObject({ ok: true });
    const replayed = await replayRecorded(new Project(lab.project), "run", null, secretsOf({ KEY: secretKey }));
    expect(replayed).toMatchObject({ difference: null, taken: 0 });
  });

  it("is told what the operator notes, from the next question on", async () => {
    lab.write(numberPack({ seed, words: [], rule: "any" }));
    let told: Promise<Ended> | null = null;
    await serve((_request, index) => {
      if (index === 0) told = trialist("note", "run", "stay below a thousand");
      return answer(proposal({ "main.sh": `sleep 1; ${scoring(200 + index)["main.sh"]}` }));
    });
    expect((await runWith("openai-compatible", "--max-trials", "9", "--target", "203")).code).toBe(0);
    expect((await (told as Promise<Ended> | null))?.code).toBe(0);
    expect(server.requests[0]?.text).not.toContain("below a thousand");
    expect(server.requests.at(-1)?.text).toContain("stay below a thousand");
    const { state } = recorded();
    expect(state.reason).toMatch(/^target: score is 2\d\d, wanted was 203$/);
    expect(state.searchTrialsEnded).toBeLessThan(9);
    expect(await replayRecorded(new Project(lab.project), "run", null, secretsOf({}))).toMatchObject({ difference: null, taken: 0 });
  });

  it.each([
    ["died", ["SIGKILL"]],
    ["was told to leave by a second Ctrl-C", ["SIGINT", "SIGINT"]],
  ] as const)("bills a question that was being asked when its process %s, and asks it anew", async (_how, signals) => {
    lab.write(numberPack({ seed, words: [], rule: "any" }));
    let isSilent = true;
    await serve((_request, index) => (isSilent ? never : answer(proposal({ "main.sh": scoring(200 + index)["main.sh"] ?? "" }))));
    const model = ["--researcher", "openai-compatible:m", "--base-url", `${server.url}/v1`, "--allow-unknown-price"];
    const first = commandLineWith(lab, {}, "run", lab.pack, "--name", "run", "--max-trials", "1", "--max-tokens", "1000000", ...model);
    await expect.poll(() => server.requests.length, { timeout: 20_000 }).toBe(1);
    for (const signal of signals) {
      first.child.kill(signal);
      // The second one means another thing than the first, which has to be heard before it.
      if (signals.length > 1) await expect.poll(() => recorded().state.phase, { timeout: 20_000 }).toBe("paused");
    }
    await first.ended;
    isSilent = false;
    expect((await trialist("resume", "run")).code).toBe(0);
    const { events, state } = recorded();
    const worst = of(events, "call.requested")[0]?.data.reservation.tokens ?? 0;
    expect(of(events, "call.failed").map(({ data }) => [data.kind, data.final, data.usage.tokens])).toEqual([
      ["infrastructure", false, worst],
    ]);
    expect(state.budget.spent.tokens).toBe(worst + 150);
    expect(trialsOf(events)).toEqual(["t0 keep", "t1 keep"]);
    expect(await replayRecorded(new Project(lab.project), "run", null, secretsOf({}))).toMatchObject({ difference: null, taken: 0 });
  });

  it("keeps other secrets of its environment from the model, and from what is written when the model knows them", async () => {
    const other = "ghp-another-0815-secret-value";
    const pack = numberPack({ seed, words: [], rule: "any" });
    lab.write({ ...pack, "environment.yaml": (pack["environment.yaml"] ?? "").replace("print a number", `print a number, not ${other}`) });
    await serve(() => answer(proposal({ "main.sh": `# ${other}\n${scoring(300)["main.sh"]}` })));
    const model = ["--researcher", "openai-compatible:m", "--base-url", `${server.url}/v1`, "--allow-unknown-price"];
    const words = ["run", lab.pack, "--name", "run", "--max-trials", "1", ...model];
    expect((await commandLineWith(lab, { GITHUB_TOKEN: other }, ...words).ended).code).toBe(0);
    expect(server.requests.map(({ text }) => text).join()).not.toContain(other);
    const { events } = recorded();
    const answers = of(events, "call.answered").flatMap(({ data }) => [data.output.blob, data.traffic?.blob ?? ""]);
    const run = inspectRun(new Project(lab.project), "run");
    const texts = answers.map((digest) => Buffer.from(run.ledger.blob(digest)).toString("utf8"));
    run.close();
    expect(texts.join()).toContain("[redacted]");
    expect(texts.join()).not.toContain(other);
  });

  it("stops clean at its cap, which its calls' worst case never passes", async () => {
    lab.write(numberPack({ seed, words: [], rule: "any" }));
    await serve((_request, index) =>
      answer(proposal({ "main.sh": scoring(200 + index)["main.sh"] ?? "" }), { input: 90_000, cachedInput: 0, output: 8000, reasoning: 0 }),
    );
    const ended = await runWith("openai-compatible", "--max-tokens", "1000000", "--max-trials", "100");
    expect(ended.code).toBe(0);
    const { state } = recorded();
    expect(state.reason).toMatch(/^budget: tokens, \d+ is left and a call of draft may use \d+$/);
    expect(state.budget.spent.tokens).toBeLessThanOrEqual(1_000_000);
    expect(state.searchTrialsEnded).toBeGreaterThan(2);
  });

  it.each([
    ["the environment", { key_variable: "MODEL_KEY" }],
    // Split, so that the configuration itself does not hold it.
    ["a keychain's command", { key_command: `printf %s%s ${secretKey.slice(0, 9)} ${secretKey.slice(9)}` }],
  ])("lets no secret from %s into anything that is written or printed, whatever the server says back", async (_where, key) => {
    lab.write(numberPack({ seed, words: [], rule: "any" }));
    await serve((_request, index) =>
      index === 1
        ? status(503, { error: { message: `overloaded; your key is ${secretKey}` } }, { "retry-after": "0" })
        : answer(proposal({ "main.sh": `# ${secretKey}\n${scoring(300 + index)["main.sh"]}` }, { hypothesis: `use ${secretKey}` })),
    );
    const model = {
      provider: "openai-compatible",
      model: "m",
      base_url: `${server.url}/v1`,
      ...key,
      price: { input: 1, output: 2 },
    };
    writeFileSync(join(lab.project, "trialist.config.yaml"), JSON.stringify({ models: { local: model }, researchers: { "*": "local" } }));
    const ended = await trialist("run", lab.pack, "--name", "run", "--seed", String(seed), "--max-trials", "2");
    expect(server.requests[0]?.headers["authorization"]).toBe(`Bearer ${secretKey}`);
    const told = [ended.stdout, ended.stderr].join("\n");
    expect(server.requests.length).toBeGreaterThan(1);
    expect(told).not.toContain(secretKey);
    expect(holding(lab.folder, secretKey)).toEqual([]);
    const { stdout: call } = await trialist("show", "run", "c1");
    expect(call).toMatch(/openai-compatible m .*120 tokens in/);
    expect(call).toMatch(/POST http[\s\S]*You improve a program by experiments/);
    expect(call).not.toContain(secretKey);
    expect((await trialist("show", "run", "c99")).code).toBe(2);
  });
});

/** Files below a folder that hold a text. */
function holding(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text));
}
