#!/usr/bin/env node
// A run whose researcher is a language model of 135 million parameters on this machine: a hundred proposals, nearly all of
// them useless, and what became of them. node examples/local-model/run.mjs [PROPOSALS]
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { setUp } from "../../scripts/setup.mjs";
import { install } from "./install.mjs";
import { billOf, callsOf, proposalsIn, statusesOf } from "./record.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const program = fileURLToPath(new URL("../../dist/interfaces/cli/main.js", import.meta.url));
const wanted = Number(process.argv[2] ?? 100);
const contextTokens = 4096;
const name = "hill";

/** The run's own file: where the model is, what it takes in, and that it costs nothing. */
const configuration = (baseUrl) => `models:
  smollm2:
    provider: openai-compatible
    model: smollm2-135m-instruct
    base_url: ${baseUrl}
    context_tokens: ${contextTokens}
    max_output_tokens: 400
    timeout_seconds: 600
    price: { input: 0, output: 0 }
`;

setUp();
const { Cache } = await import("../../dist/adapters/environments/cache.js");
const { root } = await Cache.open(process.env);
const cache = join(root, "examples", "local-model");
mkdirSync(cache, { recursive: true });
const { llama, model } = install(cache);
const project = mkdtempSync(join(cache, "project-"));
const server = spawn(process.execPath, [join(here, "serve.mjs"), llama, model, String(contextTokens)], { stdio: ["pipe", "pipe", 2] });
try {
  const baseUrl = await firstLineOf(server);
  writeFileSync(join(project, "trialist.config.yaml"), configuration(baseUrl));
  const ms = propose();
  const counted = await (await fetch(new URL("/counted", baseUrl))).json();
  tell(counted, ms);
} finally {
  server.kill();
  rmSync(project, { recursive: true, force: true });
}

async function firstLineOf(child) {
  for await (const line of createInterface({ input: child.stdout })) if (line.startsWith("http")) return line;
  throw new Error("the model's server ended before it could be asked");
}

function trialist(...words) {
  return spawnSync(process.execPath, [program, ...words], { cwd: project, encoding: "utf8", maxBuffer: 2 ** 30 });
}

/** Runs, and resumes whenever the run was suspended, until so many proposals are on record. In ms. */
function propose() {
  const begun = performance.now();
  const more = ["--max-trials", String(wanted), "--drafts", "10", "--seed", "1"];
  let ended = trialist("run", join(here, "environment"), "--name", name, "--researcher", "smollm2", ...more);
  for (let starts = 1; ; starts += 1) {
    const answered = proposalsIn(events());
    console.error(`${answered} proposals after ${starts} starts: exit code ${ended.status}`);
    if (ended.status !== 0 && ended.status !== 4) throw new Error(`the run ended with exit code ${ended.status}: ${ended.stderr}`);
    // 4: five calls in a row came to nothing, so that trialist asks before it goes on.
    if (ended.status === 0 || answered >= wanted) return performance.now() - begun;
    ended = trialist("resume", name);
  }
}

function events() {
  const file = join(project, "export.jsonl");
  rmSync(file, { force: true });
  const { status, stderr } = trialist("export", name, "--no-blobs", "--out", file);
  if (status !== 0) throw new Error(`trialist export failed: ${stderr}`);
  const lines = readFileSync(file, "utf8").trim().split("\n");
  return lines.flatMap((line) => JSON.parse(line).event ?? []);
}

function tell(counted, ms) {
  const record = events();
  const bill = billOf(record);
  const same = ["requests", "input", "cachedInput", "output"].every((what) => bill[what] === counted[what]);
  const [verified, replayed] = [trialist("verify", name), trialist("replay", name)];
  console.log(`${proposalsIn(record)} proposals of smollm2-135m-instruct in ${(ms / 60_000).toFixed(1)} minutes

What became of them:
${listed(callsOf(record))}
Trials, the baseline among them:
${listed(statusesOf(record))}
Billed:                 ${JSON.stringify(bill)}
Counted by the server:  ${JSON.stringify(counted)}
${same ? "The bill is right." : "THE BILL IS WRONG."}

trialist verify: exit code ${verified.status}
${verified.stdout}
trialist replay: exit code ${replayed.status}
${replayed.stdout}`);
  process.exitCode = same && verified.status === 0 && replayed.status === 0 ? 0 : 1;
}

function listed(counts) {
  const lines = Object.entries(counts).sort(([, a], [, b]) => b - a);
  return `${lines.map(([what, count]) => `${String(count).padStart(5)}  ${what}`).join("\n")}\n`;
}
