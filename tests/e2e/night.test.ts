import { spawnSync } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { RunSummary } from "../../src/research/report/summary-schema.js";
import { Lab } from "../support/lab.js";
import { buildProgram, document, said, startOnTerminal, until } from "./program.js";

/** The way of the guide "a night on your own repository", on the one of its examples that needs no packages. */
const example = join(import.meta.dirname, "../../examples/night/distance");
let lab: Lab;
let folder: string;

beforeAll(buildProgram);
beforeEach(() => {
  lab = new Lab();
  folder = join(lab.folder, "my benchmark");
});
afterEach(() => lab.remove());

function git(...words: string[]): string {
  const author = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"];
  const { status, stdout, stderr } = spawnSync("git", ["-C", folder, ...author, ...words], { encoding: "utf8" });
  expect(`git ${words[0]}: ${status} ${status === 0 ? "" : stderr}`).toBe(`git ${words[0]}: 0 `);
  return stdout;
}

test("init, a detached run, the terminal closed, attach, report, attribute, a commit on a branch", async () => {
  cpSync(example, folder, { recursive: true });
  git("init", "-q");
  git("add", ".");
  git("commit", "-q", "-m", "as it is");
  const here = { folder };

  expect(await said(lab, ["init", "--yes"], here)).toMatch(
    /may be edited: distance\.js[\s\S]*run: `node bench\.js`[\s\S]*metric: thousand_pairs_per_second[\s\S]*direction: maximize[\s\S]*another seed gave another number/,
  );
  git("add", ".");
  git("commit", "-q", "-m", "environment");

  // `any`: whether a gain is confirmed on a busy machine is not what this is about.
  const flags = ["--max-trials", "6", "--rule", "any", "--name", "night", "--detach"];
  const evening = startOnTerminal(lab, ["run", ".", "--researcher", "command:node propose.mjs", ...flags], here);
  await until("the run is on its own", () => /night goes on in process \d+/.test(evening.said()));
  await evening.ended; // with it its terminal is gone
  expect(await said(lab, ["attach", "night"], here)).toMatch(/^night +finished/m);

  const summary = await document<RunSummary>(lab, ["status", "night"], here);
  expect(summary).toMatchObject({ state: "finished", progress: { done: 6 }, metric: { selfReported: true } });
  const winner = summary.best?.trial ?? "t0";
  expect(winner).not.toBe("t0");
  expect(await said(lab, ["report", "night"], here)).toContain(`- **Won:** ${winner}, `);
  expect(await said(lab, ["attribute", "night", "--pairs", "3", "--yes"], here)).toMatch(
    new RegExp(`night: what ${winner} owes its gain to[\\s\\S]*Answer +Of \\d+ changes?`),
  );

  expect(await said(lab, ["apply", "night", "--branch", "trialist/night"], here)).toMatch(/is on the new branch trialist\/night/);
  expect(git("status", "--porcelain")).toBe("");
  expect(git("show", "--stat", "--format=%B", "trialist/night")).toMatch(/Run: night[\s\S]*SELF-REPORTED[\s\S]*distance\.js/);
});
