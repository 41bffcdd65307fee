import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { replayRecorded } from "../../src/app/replay.js";
import { secretsOf } from "../../src/app/secrets.js";
import { verifyRun } from "../../src/app/verify.js";
import { parseEvent, type StoredRunEvent } from "../../src/core/protocol/events.js";
import { builtSources } from "../support/built-sources.js";
import { commandLine, type Driven } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack, scoring, waiting } from "../support/lab.js";

let lab: Lab;
const clients: Client[] = [];
let served: Driven | null = null;

beforeEach(() => {
  lab = new Lab();
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close().catch(() => undefined);
  served?.child.kill("SIGKILL");
  served = null;
  lab.remove();
});

const main = (): string => join(builtSources(), "src", "interfaces", "cli", "main.js");

async function connected(transport: StdioClientTransport | StreamableHTTPClientTransport): Promise<Client> {
  const client = new Client({ name: "a test", version: "1" });
  clients.push(client);
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  return client;
}

function overStdio(...words: string[]): Promise<Client> {
  return connected(
    new StdioClientTransport({
      command: process.execPath,
      args: [main(), "mcp", ...words],
      cwd: lab.project,
      env: lab.variables,
      stderr: "ignore",
    }),
  );
}

interface Told {
  readonly text: string;
  readonly isError: boolean;
  readonly value: Record<string, unknown>;
}

async function call(client: Client, name: string, input: Record<string, unknown> = {}): Promise<Told> {
  const result = await client.callTool({ name, arguments: input });
  const [content] = result.content as { text: string }[];
  const text = content?.text ?? "";
  const isError = result.isError === true;
  return { text, isError, value: isError ? {} : (JSON.parse(text) as Record<string, unknown>) };
}

const change = (value: number): { files: { path: string; content: string }[] } => ({
  files: [{ path: "main.sh", content: scoring(value)["main.sh"] ?? "" }],
});

function recorded(name = "run"): StoredRunEvent[] {
  const run = inspectRun(new Project(lab.project), name);
  const events = [...run.ledger.read()].map(parseEvent);
  run.close();
  return events;
}

/** Starts a server over HTTP; its address and its tokens. */
async function overHttp(...words: string[]): Promise<{ url: URL; tokens: Record<string, string> }> {
  served = commandLine(lab, "mcp", ...words, "--http", "0");
  const { stderr } = served.child;
  const url = await new Promise<string>((resolve, reject) => {
    let said = "";
    stderr?.on("data", (chunk: string) => {
      said += chunk;
      const found = /MCP at (\S+);/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    void served?.ended.then(({ stderr: all }) => reject(new Error(all)));
  });
  const file = join(lab.project, ".trialist", "runs", "run", "mcp-tokens.json");
  return { url: new URL(url), tokens: JSON.parse(readFileSync(file, "utf8")) as Record<string, string> };
}

const withToken = (url: URL, token: string): StreamableHTTPClientTransport =>
  new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization: `Bearer ${token}` } } });

describe("a coding agent over MCP", () => {
  it("reads, checks, submits, waits and finishes the run by the same rules", async () => {
    lab.write(numberPack({ seed: 1, words: [], rule: "any" }));
    const client = await overStdio(lab.pack, "--name", "run", "--max-trials", "2");
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["submit_trial", "wait_for_trial", "read_frontier"]),
    );
    expect((await call(client, "wait_for_trial", { trial: "t0" })).value).toMatchObject({ trial: "t0", status: "keep" });
    expect((await call(client, "read_environment")).value).toMatchObject({ name: "number", surface: { editable: ["main.sh"] } });

    expect((await call(client, "check_candidate", { files: [{ path: "evaluate.sh", content: "exit 0" }] })).value).toMatchObject({
      admissible: false,
    });
    const refused = await call(client, "submit_trial", {
      hypothesis: "the evaluator is in the way",
      files: [{ path: "evaluate.sh", content: "exit 0" }],
    });
    expect(refused).toMatchObject({ isError: true, text: expect.stringMatching(/evaluate\.sh.*main\.sh may be changed/) });
    await call(client, "rebase", { trial: "t0" });

    const better = await call(client, "submit_trial", {
      hypothesis: "a larger number",
      expected_change: 200,
      responds_to: ["t0"],
      ...change(300),
    });
    expect(better.value).toEqual({ trial: "t1" });
    expect((await call(client, "wait_for_trial", { trial: "t1" })).value).toMatchObject({
      trial: "t1",
      status: "keep",
      plan: { expectedGain: 200 },
    });
    expect((await call(client, "read_diff", { from: "t0" })).text).toContain("+echo $((300");

    await call(client, "rebase", { trial: "t1" });
    const edit = { path: "main.sh", search: "300", replace: "250" };
    expect((await call(client, "submit_trial", { hypothesis: "smaller", edits: [edit] })).value).toEqual({ trial: "t2" });
    expect((await call(client, "wait_for_trial", { trial: "t2" })).value).toMatchObject({ status: "discard", base: "t1" });
    await expect.poll(async () => (await call(client, "read_frontier")).value["phase"]).toBe("finished");
    expect((await call(client, "submit_trial", { hypothesis: "one more", ...change(400) })).isError).toBe(true);
    await client.close();

    const project = new Project(lab.project);
    await expect.poll(async () => (await verifyRun(project, "run")).ok).toBe(true);
    const events = recorded();
    expect(of(events, "session.submitted")).toHaveLength(2);
    expect(of(events, "session.tool_called").map(({ data }) => data.tool)).toEqual(
      expect.arrayContaining(["check_candidate", "submit_trial", "wait_for_trial"]),
    );
    const replayed = await replayRecorded(project, "run", null, secretsOf({}));
    // What was refused left no candidate on record: those two events are taken as they are.
    expect(replayed).toMatchObject({ difference: null, taken: 2 });
  });

  it("sees what the operator notes, pins and holds, in its tools and from its next session on", async () => {
    lab.write(numberPack({ seed: 1, words: [], rule: "any" }));
    const { url, tokens } = await overHttp(lab.pack, "--name", "run", "--max-trials", "3");
    const client = await connected(withToken(url, tokens["researcher"] ?? ""));
    await call(client, "wait_for_trial", { trial: "t0" });
    for (const [index, value] of [300, 400].entries()) {
      await call(client, "submit_trial", { hypothesis: "larger", ...change(value) });
      await call(client, "wait_for_trial", { trial: `t${index + 1}` });
    }
    expect((await call(client, "read_frontier")).value).toMatchObject({
      notesOfTheOperator: [],
      steeredByTheOperator: { held: [], pinned: [] },
    });
    for (const words of [
      ["note", "run", "stay with trees"],
      ["hold", "run", "t2", "--reason", "a leak?"],
      ["pin", "run", "t1", "--reason", "simple"],
    ])
      expect((await commandLine(lab, ...words).ended).code).toBe(0);
    expect((await call(client, "read_frontier")).value).toMatchObject({
      leader: { trial: "t2" },
      notesOfTheOperator: ["stay with trees"],
      steeredByTheOperator: { held: ["t2"], pinned: ["t1"] },
    });
    expect((await call(client, "read_trial", { trial: "t2" })).value).toMatchObject({ status: "keep", steer: "held" });
    expect(await call(client, "rebase", { trial: "t2" })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/held by the operator/),
    });
    const next = await connected(withToken(url, tokens["researcher"] ?? ""));
    await call(next, "read_frontier");
    served?.child.kill("SIGTERM");
    await served?.ended;
    expect(of(recorded(), "session.opened").map(({ data }) => data.base)).toEqual(["t0", "t1"]);
    expect(await replayRecorded(new Project(lab.project), "run", null, secretsOf({}))).toMatchObject({ difference: null, taken: 0 });
  });

  it("is told what it did wrong, and nothing is lost or doubled when it sends two at once or leaves while it waits", async () => {
    lab.write(numberPack({ seed: 1, words: [], rule: "any", gate: lab.gate }));
    const { url, tokens } = await overHttp(lab.pack, "--name", "run", "--max-trials", "3", "--parallel", "2");
    const bare = (headers: Record<string, string>): Promise<number> =>
      fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: "{}" }).then(({ status }) => status);
    expect(await bare({})).toBe(401);
    expect(await bare({ authorization: "Bearer wrong" })).toBe(401);
    expect(await bare({ authorization: `Bearer ${tokens["researcher"]}`, origin: "http://evil.example" })).toBe(403);
    expect(await bare({ authorization: `Bearer ${tokens["reviewer"]}`, "mcp-session-id": "none" })).toBe(404);

    const client = await connected(withToken(url, tokens["researcher"] ?? ""));
    expect(await call(client, "no_such_tool")).toMatchObject({ isError: true, text: expect.stringContaining("no tool") });
    expect(await call(client, "read_trial", { trial: "t9" })).toMatchObject({ isError: true, text: expect.stringContaining("no trial") });
    expect(await call(client, "read_trial", { trial: 7 })).toMatchObject({ isError: true });
    await call(client, "wait_for_trial", { trial: "t0" });

    const held = { files: [{ path: "main.sh", content: waiting("go", 500)["main.sh"] ?? "" }] };
    const both = await Promise.all([
      call(client, "submit_trial", { hypothesis: "waits", ...held }),
      call(client, "submit_trial", { hypothesis: "does not", ...change(300) }),
    ]);
    expect(both.map(({ value }) => value["trial"]).sort()).toEqual(["t1", "t2"]);
    // The client leaves while it waits; its trial goes on, and another client finds it.
    const left = call(client, "wait_for_trial", { trial: "t1" }).catch(() => "left");
    await call(client, "read_frontier");
    await client.close();
    expect(await left).toBe("left");
    lab.open("go");
    const again = await connected(withToken(url, tokens["researcher"] ?? ""));
    expect((await call(again, "wait_for_trial", { trial: "t1" })).value).toMatchObject({ status: "keep" });

    const reviewer = await connected(withToken(url, tokens["reviewer"] ?? ""));
    const names = (await reviewer.listTools()).tools.map(({ name }) => name);
    expect(names).not.toContain("submit_trial");
    const seen = [await call(reviewer, "read_trial", { trial: "t1" }), await call(reviewer, "read_frontier")];
    expect(seen.map(({ text }) => text).join()).not.toMatch(/hypothesis|waits/);
    expect(await call(reviewer, "submit_trial", { hypothesis: "x" })).toMatchObject({ isError: true });

    served?.child.kill("SIGTERM");
    expect((await served?.ended)?.code).toBe(4);
    const events = recorded();
    expect(of(events, "trial.admitted").map(({ data }) => data.trial)).toEqual(["t0", "t1", "t2"]);
    expect(
      of(events, "trial.ended")
        .map(({ data }) => data.trial)
        .sort(),
    ).toEqual(["t0", "t1", "t2"]);

    const resumed = await overHttp("--run", "run", "--frozen");
    const third = await connected(withToken(resumed.url, resumed.tokens["researcher"] ?? ""));
    expect((await call(third, "submit_trial", { hypothesis: "after a restart", ...change(700) })).value).toEqual({ trial: "t3" });
    expect((await call(third, "wait_for_trial", { trial: "t3" })).value).toMatchObject({ status: "keep" });
  });
});
