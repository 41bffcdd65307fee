import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEvent, type StoredRunEvent } from "../../src/core/protocol/events.js";
import { statusClasses } from "../../src/core/protocol/status.js";
import type { Side, TimedStep } from "./steps.js";
import { type StubServer, stubModel } from "./stub-server.js";
import { playbookName, writeTrivialEnvironment } from "./trivial-environment.js";
import { watch } from "./watched-process.js";

const program = fileURLToPath(new URL("../../dist/interfaces/cli/main.js", import.meta.url));
const runName = "bench";

interface Asked {
  /** Words of the command line that say who proposes. */
  readonly words: (baseUrl: string) => readonly string[];
  /** In the table's words. */
  readonly name: string;
  /** Its answer is a command in a sandbox: no stage of the ledger, so that it stays within trialist's own time. */
  readonly isSandboxed: boolean;
}

const researchers = {
  playbook: { words: () => ["--researcher", playbookName], name: "a playbook command in the sandbox", isSandboxed: true },
  model: {
    words: (baseUrl) => ["--researcher", "openai-compatible", "--model", stubModel, "--base-url", baseUrl, "--allow-unknown-price"],
    name: "the stub model",
    isSandboxed: false,
  },
} satisfies Record<string, Asked>;

/** Who is asked for trialist's candidates. */
export const researcher: Asked = researchers.model;

/** trialist as its users start it, one trial at a time in bubblewrap. */
export async function runTrialist(parent: string, server: StubServer, steps: number): Promise<Side> {
  const [folder, pack] = [join(parent, "trialist"), join(parent, "pack")];
  mkdirSync(folder);
  writeTrivialEnvironment(pack);
  const seen = server.requests.length;
  const variables = {
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
    HOME: folder,
    TRIALIST_CACHE: join(parent, "cache"),
    OPENAI_API_KEY: "none",
  };
  const { written } = await watch({
    program: process.execPath,
    words: [program, "run", pack, "--name", runName, "--max-trials", String(steps), ...researcher.words(server.baseUrl)],
    folder,
    variables,
    limitMs: 120_000 + steps * 2000,
  });
  const timed = stepsOf(exported(folder, variables));
  if (timed.length !== steps) throw new Error(`trialist made ${timed.length} of ${steps} trials`);
  return { steps: timed, requests: server.requests.slice(seen), written };
}

function exported(folder: string, env: Readonly<Record<string, string>>): StoredRunEvent[] {
  const file = join(folder, "events.jsonl");
  execFileSync(process.execPath, [program, "export", runName, "--no-blobs", "--out", file], { cwd: folder, env, stdio: "ignore" });
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  const events = lines.map((line) => JSON.parse(line) as { readonly event?: Parameters<typeof parseEvent>[0] });
  return events.flatMap(({ event }) => (event === undefined ? [] : [parseEvent(event)]));
}

/** With one trial at a time, all stages between the ends of two trials are those of the second one. */
function stepsOf(events: readonly StoredRunEvent[]): TimedStep[] {
  const steps: TimedStep[] = [];
  let [begun, scriptMs] = [Number.NaN, 0];
  for (const event of events) {
    if (event.type === "run.calibrated") [begun, scriptMs] = [event.at, 0];
    if (event.type === "stage.ended") scriptMs += event.data.outcome.wallMs;
    if (event.type !== "trial.ended" || Number.isNaN(begun)) continue;
    if (statusClasses[event.data.status] !== "valid") throw new Error(`${event.data.trial} is ${event.data.status}: ${event.data.reason}`);
    steps.push({ begun, ended: event.at, scriptMs, startMs: 0 });
    [begun, scriptMs] = [event.at, 0];
  }
  return steps;
}
