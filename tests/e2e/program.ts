import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { Lab } from "../support/lab.js";

const root = join(import.meta.dirname, "../..");
export const program = join(root, "dist/interfaces/cli/main.js");
/** Of util-linux, which every Linux has: gives a command a terminal of its own. */
const ptyProgram = "/usr/bin/script";
const buildLock = join(root, "node_modules/.cache/trialist/e2e-build");

/** Builds `dist` where the sources are newer: `npm test` has done so already. One test file builds, the others wait for it. */
export async function buildProgram(): Promise<void> {
  mkdirSync(dirname(buildLock), { recursive: true });
  for (const deadline = Date.now() + 240_000; !taken(buildLock); await sleep(200)) {
    if (Date.now() > deadline) throw new Error(`another build holds ${buildLock}; remove it if there is none`);
  }
  try {
    if (newest(join(root, "src")) <= modified(program)) return;
    const built = spawnSync(process.execPath, ["scripts/build.mjs"], { cwd: root, encoding: "utf8" });
    if (built.status !== 0) throw new Error(`the sources do not build:\n${built.stdout}${built.stderr}`);
  } finally {
    rmSync(buildLock, { recursive: true, force: true });
  }
}

function taken(lock: string): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    return false;
  }
}

function newest(folder: string): number {
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => /(?<!\.test)\.ts$/.test(path));
  return Math.max(...sources.map((path) => modified(join(folder, path))));
}

function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Circumstances {
  /** Default: the lab's project. */
  readonly folder?: string;
  readonly variables?: Readonly<Record<string, string>>;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** What was said so far, on both streams. */
  said(): string;
}

/** Starts the built program without a terminal, as a script or CI does. */
export function start(lab: Lab, words: readonly string[], { folder, variables }: Circumstances = {}): Started {
  return follow(
    spawn(process.execPath, [program, ...words], {
      cwd: folder ?? lab.project,
      env: { ...lab.variables, ...variables },
      stdio: ["ignore", "pipe", "pipe"],
    }),
  );
}

export function trialist(lab: Lab, words: readonly string[], more: Circumstances = {}): Promise<Ended> {
  return start(lab, words, more).ended;
}

/**
 * Starts the program on a terminal of its own. Standard output and error come as one. `redirect`: shell words after the
 * command, such as `2> FILE`.
 */
export function startOnTerminal(lab: Lab, words: readonly string[], more: Circumstances & { readonly redirect?: string } = {}): Started {
  // A terminal that nobody looks at has no width, and what wraps text would break after each letter.
  const line = `stty columns 120 rows 40; ${[process.execPath, program, ...words].map(quoted).join(" ")} ${more.redirect ?? ""}`;
  return follow(
    spawn(ptyProgram, ["--quiet", "--return", "--command", line, "/dev/null"], {
      cwd: more.folder ?? lab.project,
      env: { ...lab.variables, TERM: "xterm-256color", SHELL: "/bin/sh", ...more.variables },
      stdio: ["pipe", "pipe", "pipe"],
    }),
  );
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

function follow(child: ChildProcess): Started {
  let [stdout, stderr] = ["", ""];
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended, said: () => stdout + stderr };
}

/** Runs a command that must end well, and returns what it printed. */
export async function said(lab: Lab, words: readonly string[], more: Circumstances = {}): Promise<string> {
  const { code, stdout, stderr } = await trialist(lab, words, more);
  expect(`${words[0]} ${code}\n${code === 0 ? "" : stdout + stderr}`).toBe(`${words[0]} 0\n`);
  expectPlain(stdout);
  expectPlain(stderr);
  return stdout;
}

/** Runs a command with `--json`: it must end with this code, with one document and nothing else on standard output. */
export async function document<T>(lab: Lab, words: readonly string[], more: Circumstances & { readonly code?: number } = {}): Promise<T> {
  const { code, stdout, stderr } = await trialist(lab, [...words, "--json"], more);
  expect(`${words[0]} ${code}\n${code === (more.code ?? 0) ? "" : stdout + stderr}`).toBe(`${words[0]} ${more.code ?? 0}\n`);
  expectPlain(stdout);
  expectPlain(stderr);
  return JSON.parse(stdout) as T;
}

/** Characters that move a cursor, colour, reorder or hide text. */
const effective = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Nothing in it that acts on a terminal, line ends and tabs aside. */
export function expectPlain(text: string): void {
  const found = [...text.matchAll(effective)].filter(([mark]) => mark !== "\n" && mark !== "\t");
  expect(found.map(({ 0: mark, index }) => JSON.stringify([mark, text.slice(Math.max(0, index - 40), index + 40)]))).toEqual([]);
}

export async function until(what: string, holds: () => boolean, patienceMs = 60_000): Promise<void> {
  for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(50)) if (holds()) return;
  throw new Error(`it did not happen that ${what}`);
}

/** Does the work of every item, two at a time: the machine has two cores. */
export async function inPairs<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += 2) results.push(...(await Promise.all(items.slice(at, at + 2).map(work))));
  return results;
}

/** The rows of a TSV file by their header; every row must have its length. */
export function rowsOf(text: string): { readonly header: readonly string[]; readonly rows: readonly Readonly<Record<string, string>>[] } {
  expect(text.endsWith("\n")).toBe(true);
  const [header = [], ...lines] = text
    .slice(0, -1)
    .split("\n")
    .map((line) => line.split("\t"));
  expect(lines.filter((cells) => cells.length !== header.length)).toEqual([]);
  return { header, rows: lines.map((cells) => Object.fromEntries(header.map((name, at) => [name, cells[at] ?? ""]))) };
}
