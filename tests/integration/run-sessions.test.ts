import { writeFileSync } from "node:fs";
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
import { Lab, numberPack, scoring, waiting } from "../support/lab.js";
import { answer, type Behaviour, calls, type ModelRequest, type ModelServer, startModelServer, status } from "../support/model-server.js";

let lab: Lab;
let server: ModelServer;

beforeEach(() => {
  lab = new Lab();
});
afterEach(async () => {
  await server.close();
  lab.remove();
});

const keys = { ANTHROPIC_API_KEY: "test-key-1", OPENAI_API_KEY: "test-key-2", GEMINI_API_KEY: "test-key-3" };
const paths = { anthropic: "/v1", openai: "/v1", google: "/v1beta", "openai-compatible": "/v1" };

function started(provider: keyof typeof paths, ...more: readonly string[]): Driven {
  const model = ["--researcher", provider, "--model", "m", "--base-url", `${server.url}${paths[provider]}`, "--allow-unknown-price"];
  return commandLineWith(lab, keys, "run", lab.pack, "--organization", "sessions", ...model, ...more);
}

function trialist(...words: readonly string[]): Promise<Ended> {
  return commandLineWith(lab, keys, ...words).ended;
}

function recorded(name: string): StoredRunEvent[] {
  const run = inspectRun(new Project(lab.project), name);
  const events = [...run.ledger.read()].map(parseEvent);
  run.close();
  return events;
}

const submit = (value: number, hypothesis = `print ${value}`) => ({
  name: "submit_trial",
  input: { hypothesis, files: [{ path: "main.sh", content: scoring(value)["main.sh"] }] },
});
const wait = (trial: string) => ({ name: "wait_for_trial", input: { trial } });

/** Behaviours by how often was asked, the last one for ever. */
const inOrder =
  (...each: readonly Behaviour[]) =>
  (_request: ModelRequest, index: number): Behaviour =>
    each[Math.min(index, each.length - 1)] ?? answer("DONE");

describe("a language model in a long session", () => {
  const talk = [
    calls({ name: "read_environment", input: {} }, { name: "read_files", input: { path: "main.sh" } }),
    calls(
      { name: "edit_files", input: { edits: [{ path: "main.sh", search: "100", replace: "300" }] } },
      { name: "check_candidate", input: {} },
    ),
    calls({ name: "submit_trial", input: { hypothesis: "a larger number", expected_change: 200 } }),
    calls(wait("t1")),
    calls({ name: "no_such_tool", input: {} }, submit(200)),
    calls(wait("t2")),
    answer("Nothing else is worth a trial. DONE"),
  ];

  it.each(Object.keys(paths) as (keyof typeof paths)[])(
    "works with tools over the wire format of %s, and its run is replayed",
    async (provider) => {
      lab.write(numberPack({ seed: 1, words: [], rule: "any" }));
      server = await startModelServer(inOrder(...talk));
      const ended = await started(provider, "--name", "run", "--max-trials", "2").ended;
      expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("t2")]);
      const events = recorded("run");
      expect(of(events, "trial.ended").map(({ data }) => `${data.trial} ${data.status}`)).toEqual(["t0 keep", "t1 keep", "t2 discard"]);
      expect(of(events, "session.tool_called").map(({ data }) => data.tool)).toEqual([
        ...["read_environment", "read_files", "edit_files", "check_candidate", "submit_trial", "wait_for_trial"],
        ...["no_such_tool", "submit_trial", "wait_for_trial"],
      ]);
      const turns = of(events, "session.turn_ended");
      expect(turns.length).toBeGreaterThanOrEqual(6);
      expect(turns[0]?.data).toMatchObject({ usage: { tokens: 150 }, model: { provider, requests: 1 } });
      // The model was told what its tools gave.
      expect(server.requests[1]?.text).toContain("main.sh");
      expect(server.requests[5]?.text).toContain("there is no tool");
      const project = new Project(lab.project);
      expect(await verifyRun(project, "run")).toMatchObject({ ok: true });
      expect(await replayRecorded(project, "run", null, secretsOf({}))).toMatchObject({ difference: null, taken: 0 });
    },
  );

  it("runs a preflight without spending a trial, and searches the web only where the operator has configured it", async () => {
    const pack = numberPack({ seed: 1, words: [], rule: "any" });
    const preflight = "stages:\n  - { name: preflight, run: sh -n main.sh }";
    lab.write({ ...pack, "environment.yaml": (pack["environment.yaml"] ?? "").replace("stages:", preflight) });
    const broken = { name: "run_preflight", input: { files: [{ path: "main.sh", content: "if\n" }] } };
    const search = { name: "web_search", input: { query: "how to print a number" } };
    const talk = [
      calls(broken),
      calls({ name: "run_preflight", input: { files: submit(300).input.files } }),
      calls(search),
      calls(submit(300)),
      calls(wait("t1")),
    ];
    server = await startModelServer((_request, index) => talk[index % talk.length] ?? answer("DONE"));
    expect((await started("openai-compatible", "--name", "without", "--max-trials", "1").ended).code).toBe(0);
    const without = server.requests.map(({ text }) => text);
    expect(without[1]).toMatch(/preflight exited with code/);
    expect(without[2]).toMatch(/\\"passed\\": true/);
    expect(without[3]).toContain("there is no tool");
    const { state } = inspectRun(new Project(lab.project), "without");
    expect(state.budget.spent.trials).toBe(1);
    expect(
      of(recorded("without"), "session.turn_ended").filter(({ data }) => data.usage.computeMs > 0 && data.model === null),
    ).toHaveLength(2);

    writeFileSync(join(lab.project, "trialist.config.yaml"), JSON.stringify({ web_search: { command: "tr a-z A-Z" } }));
    while (server.requests.length % talk.length !== 0) await fetch(`${server.url}/v1/chat/completions`, { method: "POST", body: "{}" });
    const from = server.requests.length;
    expect((await started("openai-compatible", "--name", "with", "--max-trials", "1").ended).code).toBe(0);
    expect(server.requests[from + 3]?.text).toContain("HOW TO PRINT A NUMBER");
  });

  it("is interrupted when its process dies, billed, and opened anew from where it stood", async () => {
    lab.write(numberPack({ seed: 1, words: [], rule: "any", gate: lab.gate }));
    const held = {
      name: "submit_trial",
      input: { hypothesis: "waits", files: [{ path: "main.sh", content: waiting("go", 500)["main.sh"] }] },
    };
    let second = false;
    server = await startModelServer((_request, index) =>
      second
        ? (inOrder(calls(wait("t2")), calls(submit(700)), calls(wait("t3")))(_request, index - 4) as Behaviour)
        : inOrder(calls(submit(300)), calls(wait("t1")), calls(held), calls(wait("t2")))(_request, index),
    );
    const first = started("openai-compatible", "--name", "run", "--max-trials", "3");
    await expect.poll(() => server.requests.length, { timeout: 20_000 }).toBe(4);
    first.child.kill("SIGKILL");
    await first.ended;
    second = true;
    lab.open("go");
    const resumed = await trialist("resume", "run", "--frozen");
    expect([resumed.code, resumed.stderr]).toEqual([0, expect.anything()]);
    const events = recorded("run");
    expect(of(events, "session.interrupted").map(({ data }) => data)).toMatchObject([
      { session: "s1", reason: "the process that drove it ended" },
    ]);
    expect(of(events, "session.opened").map(({ data }) => [data.session, data.base, data.reopens])).toEqual([
      ["s1", "t0", null],
      ["s2", "t2", "s1"],
    ]);
    expect(of(events, "trial.ended").map(({ data }) => data.trial)).toEqual(["t0", "t1", "t2", "t3"]);
    expect(await verifyRun(new Project(lab.project), "run")).toMatchObject({ ok: true });
  });

  it("suspends the run when its model cannot be asked, and goes on when it can", async () => {
    lab.write(numberPack({ seed: 1, words: [], rule: "any" }));
    let isBad = true;
    server = await startModelServer((request, index) =>
      isBad
        ? status(429, { error: { code: "insufficient_quota", message: "You exceeded your current quota" } })
        : inOrder(calls(submit(300)), calls(wait("t1")))(request, index - 1),
    );
    expect((await started("openai-compatible", "--name", "run", "--max-trials", "1").ended).code).toBe(4);
    expect(server.requests).toHaveLength(1);
    isBad = false;
    expect((await trialist("resume", "run")).code).toBe(0);
    expect(of(recorded("run"), "trial.ended").map(({ data }) => data.trial)).toEqual(["t0", "t1"]);
  });

  it("ends at its budget of tokens, and when sessions hand nothing in", async () => {
    lab.write(numberPack({ seed: 1, words: [], rule: "any" }));
    server = await startModelServer(() => calls({ name: "read_frontier", input: {} }));
    const capped = await started("openai-compatible", "--name", "capped", "--max-tokens", "40000", "--max-trials", "5").ended;
    expect(capped.code).toBe(0);
    const { state } = inspectRun(new Project(lab.project), "capped");
    expect(state.budget.spent.tokens).toBeGreaterThan(1000);
    expect(state.budget.spent.tokens).toBeLessThanOrEqual(40_000);
    await server.close();
    server = await startModelServer(() => answer("I have no idea. DONE"));
    expect((await started("openai-compatible", "--name", "idle", "--max-trials", "5").ended).code).toBe(0);
    expect(inspectRun(new Project(lab.project), "idle").state.reason).toBe("3 sessions in a row handed nothing in");
  });
});
