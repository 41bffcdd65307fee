import { execFile } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract } from "../../src/adapters/environments/contract.js";
import { callFailure, suspendsRun } from "../../src/core/protocol/call-failure.js";
import { eventSchemas } from "../../src/core/protocol/events.js";
import { trialStatuses } from "../../src/core/protocol/status.js";
import { exitCodes } from "../../src/interfaces/cli/command.js";
import { commands } from "../../src/interfaces/cli/registry.js";
import { runSummary } from "../../src/research/report/summary-schema.js";
import { tools } from "../../src/research/tools/registry.js";
import { builtSources } from "../support/built-sources.js";

const root = join(import.meta.dirname, "../..");
const pages = ["README.md", "AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md", ...markdownBelow("docs"), ...markdownBelow("examples")];

function markdownBelow(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".md")).map((name) => join(folder, name));
}

function textOf(page: string): string {
  return readFileSync(join(root, page), "utf8");
}

/** The page without what stands in code blocks. */
function proseOf(page: string): string {
  return textOf(page).replaceAll(/^```[\s\S]*?^```$/gm, "");
}

function inlineCode(page: string): string[] {
  return [...proseOf(page).matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
}

interface Ended {
  readonly code: number;
  readonly said: string;
}

function trialist(args: readonly string[], folder = root, environment: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const program = join(builtSources(), "src/interfaces/cli/main.js");
  const options = { cwd: folder, env: { ...process.env, ...environment, NO_COLOR: "1" }, encoding: "utf8" as const };
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), said: stdout + stderr });
    });
  });
}

/** What `--help` says of one command. */
interface Help {
  /** Option → whether a value follows it. */
  readonly options: ReadonlyMap<string, boolean>;
  readonly required: number;
  readonly most: number;
}

function readHelp(text: string): Help {
  const usage = /^Usage: trialist \S+ \[options\](.*)$/m.exec(text)?.[1] ?? "";
  const options = new Map<string, boolean>();
  for (const [, short, long = "", value] of text.matchAll(/^ {2}(?:(-\w), )?(--[\w-]+)( <[^>]+>)?/gm)) {
    options.set(long, value !== undefined);
    if (short !== undefined) options.set(short, value !== undefined);
  }
  const required = [...usage.matchAll(/<[^>]+>/g)].length;
  return { options, required, most: required + [...usage.matchAll(/\[[^\]]+\]/g)].length };
}

interface Call {
  readonly page: string;
  readonly line: string;
  readonly words: readonly string[];
  /** A line of a code block, which somebody will copy: it has to be complete. */
  readonly whole: boolean;
}

function callsOf(page: string): Call[] {
  const blocks = [...textOf(page).matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, block = ""]) => block.split("\n"));
  const calls = (lines: readonly string[], whole: boolean): Call[] =>
    lines.flatMap((line) =>
      commandsIn(line).flatMap((words) => {
        const rest = words[0] === "npx" ? words.slice(1) : words;
        return rest[0] === "trialist" && rest.length > 1 ? [{ page, line, words: rest.slice(1), whole }] : [];
      }),
    );
  return [...calls(blocks, true), ...calls(inlineCode(page), false)];
}

/** Splits a line of shell into commands and words: quotes, `&&`, `|`, `;` and comments, which is all that the pages use. */
function commandsIn(line: string): string[][] {
  const tokens = [...line.matchAll(/'[^']*'|"[^"]*"|&&|[|;]|#.*$|[^\s|;&#'"]+/g)]
    .map(([token]) => token)
    .filter((token) => !token.startsWith("#"));
  const all: string[][] = [[]];
  for (const token of tokens) {
    if (["&&", "|", ";"].includes(token)) all.push([]);
    else all.at(-1)?.push(token.replaceAll(/^['"]|['"]$/g, ""));
  }
  return all;
}

/** What is wrong with a call, in words; empty when nothing is. */
function faultsOf({ words, whole }: Call, help: ReadonlyMap<string, Help>): string[] {
  const [name = "", ...rest] = words;
  // `trialist COMMAND --help`, `trialist --help`.
  if (name.startsWith("-") || name === name.toUpperCase()) return [];
  const known = help.get(name);
  if (known === undefined) return [`there is no command ${name}`];
  const faults: string[] = [];
  let given = 0;
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? "";
    if (!word.startsWith("-")) given += 1;
    else if (!known.options.has(word)) faults.push(`${name} has no option ${word}`);
    else if (known.options.get(word) === true) at += 1;
  }
  if (given > known.most) faults.push(`${name} takes at most ${known.most} arguments`);
  if (whole && given < known.required) faults.push(`${name} needs ${known.required} arguments`);
  return faults;
}

describe("the documents", () => {
  const help = new Map<string, Help>();

  beforeAll(async () => {
    const read = await Promise.all(commands.map(async ({ name }) => ({ name, ended: await trialist([name, "--help"]) })));
    for (const { name, ended } of read) help.set(name, readHelp(ended.said));
  });

  test("name commands and options that exist, and enough of them", () => {
    expect([...help.values()].every(({ options }) => options.has("--json") && options.has("--folder"))).toBe(true);
    const calls = pages.flatMap(callsOf);
    expect(calls.length).toBeGreaterThan(60);
    expect(calls.flatMap((call) => faultsOf(call, help).map((fault) => `${call.page}: ${call.line}: ${fault}`))).toEqual([]);
  });

  test("leave no command out", () => {
    const inReadme = new Set(inlineCode("README.md"));
    const inJson = inlineCode("docs/guides/json-output.md").map((code) => code.split(" ")[0]);
    expect(commands.map(({ name }) => name).filter((name) => !inReadme.has(`trialist ${name}`))).toEqual([]);
    expect(commands.map(({ name }) => name).filter((name) => !inJson.includes(name))).toEqual([]);
  });

  test("give the exit codes that there are", () => {
    const codes = Object.values(exitCodes).map(String).sort();
    const rows = (page: string): string[] => [...textOf(page).matchAll(/^\| (\d+) \|/gm)].map(([, code = ""]) => code).sort();
    expect(rows("docs/guides/json-output.md")).toEqual(codes);
    expect(rows("docs/architecture/command-line.md")).toEqual(codes);
    const paragraph = /^Exit codes:[\s\S]*?\n\n/m.exec(textOf("README.md"))?.[0] ?? "";
    expect([...paragraph.matchAll(/`(\d+)`/g)].map(([, code = ""]) => code).sort()).toEqual(codes);
  });

  test("link to what is there", () => {
    const broken = pages.flatMap((page) =>
      [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, target = ""]) => target.replace(/#.*$/, ""))
        .filter((target) => target !== "" && !/^[a-z]+:/.test(target) && !existsSync(join(root, dirname(page), target)))
        .map((target) => `${page}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test("name files and scripts that are there", () => {
    const { scripts } = JSON.parse(textOf("package.json")) as { readonly scripts: Readonly<Record<string, string>> };
    const missing = pages.flatMap((page) =>
      [...inlineCode(page), ...textOf(page).split("\n")].flatMap((code) => {
        const script = /^npm run ([\w:]+)/.exec(code)?.[1];
        if (script !== undefined && scripts[script] === undefined) return [`${page}: npm run ${script}`];
        const isPath = /^(src|tests|docs|examples|environments|scripts|bench|studies)\/[\w./-]+$/.test(code) && !/NAME|FOLDER/.test(code);
        return isPath && !existsSync(join(root, code)) ? [`${page}: ${code}`] : [];
      }),
    );
    expect(missing).toEqual([]);
  });

  test("list every event, status, tool, failure that suspends, key of the contract and member of the status document", () => {
    const unlisted = (page: string, names: readonly string[]): string[] => {
      const listed = inlineCode(page).flatMap((code) => [code, code.split(".")[0] ?? ""]);
      return names.filter((name) => !listed.includes(name));
    };
    expect(unlisted("docs/architecture/core.md", Object.keys(eventSchemas))).toEqual([]);
    expect(unlisted("docs/guides/read-a-report.md", trialStatuses)).toEqual([]);
    expect(unlisted("docs/guides/write-an-environment.md", Object.keys(contract.shape))).toEqual([]);
    expect(unlisted("docs/guides/json-output.md", Object.keys(runSummary.shape))).toEqual([]);
    const toolNames = tools.map(({ name }) => name);
    expect(unlisted("docs/guides/drive-it-from-your-coding-agent.md", toolNames)).toEqual([]);
    expect(unlisted("docs/guides/use-your-own-model.md", callFailure.options.filter(suspendsRun))).toEqual([]);
  });

  test("show the example's researcher as it is", () => {
    const [, shown = ""] = /^```python\n([\s\S]*?)^```$/m.exec(textOf("docs/guides/write-a-researcher.md")) ?? [];
    expect(shown.length).toBeGreaterThan(300);
    expect(textOf("examples/researcher/propose.py")).toContain(shown);
  });
});

describe("the examples", () => {
  const folder = mkdtempSync(join(tmpdir(), "trialist-docs-"));
  const environment = { TRIALIST_CACHE: join(folder, "cache") };

  beforeAll(() => {
    chmodSync(folder, 0o755);
    mkdirSync(environment.TRIALIST_CACHE);
  });

  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  /** A line of a page, carried out in a copy of an example. */
  async function follow(place: string, words: readonly string[]): Promise<string> {
    const { code, said } = await trialist(words, place, environment);
    expect(`${words[0]}: ${code}\n${code === 0 ? "" : said}`).toBe(`${words[0]}: 0\n`);
    return said;
  }

  function copyOf(example: string, name: string): string {
    const place = join(folder, name);
    cpSync(join(root, "examples", example), place, { recursive: true });
    return place;
  }

  test("own-script: what the README shows, line by line", async () => {
    const place = copyOf("own-script", "program");
    const block = [...textOf("README.md").matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
      .map(([, text = ""]) => text)
      .find((text) => text.includes("trialist init"));
    for (const line of (block ?? "").trim().split("\n")) await follow(place, commandsIn(line)[0]?.slice(1) ?? []);
    expect(readFileSync(join(place, "train.sh"), "utf8")).not.toBe(textOf("examples/own-script/train.sh"));
  });

  test("researcher: a confirmed best, a look at held-out, a ledger that checks out", async () => {
    const place = copyOf("researcher", "curve");
    await follow(place, ["run", ".", "--researcher", "neighbours", "--max-trials", "4", "--name", "curve"]);
    const status = JSON.parse(await follow(place, ["status", "curve", "--json"])) as {
      readonly best: { readonly confirmed: boolean; readonly trial: string };
    };
    expect(status.best).toMatchObject({ confirmed: true });
    expect(status.best.trial).not.toBe("t0");
    expect(await follow(place, ["heldout", "curve"])).toContain("held-out");
    expect(await follow(place, ["verify", "--all"])).toContain("check out");
  });

  test("hold nothing but text that a reader needs", () => {
    const strays = readdirSync(join(root, "examples"), { recursive: true, encoding: "utf8" }).filter((path) =>
      /(^|\/)(\.trialist|__pycache__|data)(\/|$)/.test(path),
    );
    expect(strays.map((path) => relative(root, path))).toEqual([]);
  });
});
