import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { parse } from "yaml";
import { Lab } from "../support/lab.js";
import { buildProgram, type Started, startOnTerminal, until } from "./program.js";

/** `init` as a person has it: questions on a terminal, each with what the folder suggests. */
const [enter, down, interrupt] = ["\r", "\u001b[B", "\u0003"];
let lab: Lab;

beforeAll(buildProgram);
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

/** Two programs that are alike, and a number that is another one on every seed. */
const files = {
  "train_a.sh": 'echo "val_loss: 0.$((TRIALIST_SEED + 5))"\n',
  "train_b.sh": "echo score: 1\n",
};

/** Answers a question when it stands there; an empty text takes what is suggested. */
async function answer(dialogue: Started, question: RegExp, keys: string): Promise<void> {
  await until(`it asks ${question}`, () => question.test(dialogue.said()));
  dialogue.child.stdin?.write(keys);
}

function contract(): Record<string, unknown> {
  return parse(readFileSync(join(lab.pack, "environment.yaml"), "utf8")) as Record<string, unknown>;
}

test("every question takes what is suggested, or what is typed; a second seed decides the rule", async () => {
  lab.write(files);
  const dialogue = startOnTerminal(lab, ["init", lab.pack]);
  await answer(dialogue, /Which program is it about\?[\s\S]*train_a\.sh/, enter);
  await answer(dialogue, /Which files may be edited\?/, enter);
  await answer(dialogue, /Which command runs the program\?/, enter);
  await answer(dialogue, /What is the number called[\s\S]*val_loss/, enter);
  await answer(dialogue, /Which way is better\?[\s\S]*minimize/, down + enter);
  await answer(dialogue, /Measure it once more on another seed/, enter);
  const { code, stdout } = await dialogue.ended;
  expect(stdout).toMatch(/baseline: val_loss 0\.5; it took/);
  expect(stdout).toMatch(/another seed gave another number: the rule is confirmed/);
  expect(stdout).toMatch(/eight hours hold/);
  expect(code).toBe(0);
  expect(contract()).toMatchObject({
    surface: { editable: ["train_a.sh"] },
    metrics: [{ name: "val_loss", direction: "maximize" }],
    promotion: { rule: "confirmed" },
  });
});

test("who leaves in the middle has written nothing", async () => {
  lab.write(files);
  const dialogue = startOnTerminal(lab, ["init", lab.pack]);
  await answer(dialogue, /Which program is it about\?/, enter);
  await answer(dialogue, /Which files may be edited\?/, interrupt);
  const { code, stdout } = await dialogue.ended;
  expect(stdout).toMatch(/expected an answer; found that you left\. Nothing was written\./);
  expect(code).toBe(2);
  expect(() => contract()).toThrow(/ENOENT/);
});
