#!/usr/bin/env node
// The main job from nothing: set up, then let the reference researcher improve the recipe of the flchain environment.
// What follows -- is handed on to `trialist run`: npm run demo -- --max-trials 40
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root, runAsMain } from "./set-up/step.mjs";
import { setUp } from "./setup.mjs";

/** All that the demo chooses. One to three minutes on two cores, set-up aside. */
const demo = {
  environment: "environments/flchain",
  name: "demo",
  options: { researcher: "reference", "max-trials": 24, parallel: 2 },
};

const trialist = (...args) =>
  spawnSync(process.execPath, ["dist/interfaces/cli/main.js", ...args], { cwd: root, stdio: "inherit" }).status ?? 1;

runAsMain(import.meta.url, () => {
  setUp();
  const name = freeName();
  const chosen = Object.entries(demo.options).flatMap(([option, value]) => [`--${option}`, String(value)]);
  const ended = trialist("run", demo.environment, "--name", name, ...chosen, ...process.argv.slice(2));
  if (ended !== 0) process.exit(ended);
  const folder = join(".trialist", "runs", name, "report");
  const reported = trialist("report", name, "--out", folder);
  if (reported !== 0) process.exit(reported);
  console.log(`
The report:           ${join(folder, "report.md")}
What won, in short:   npx trialist status ${name}
Is it all recorded:   npx trialist verify --all
On unseen data:       npx trialist heldout ${name}`);
});

/** demo, then demo-2, demo-3: a run's name is never used twice. */
function freeName() {
  const taken = (name) => existsSync(join(root, ".trialist", "runs", name));
  let name = demo.name;
  for (let number = 2; taken(name); number += 1) name = `${demo.name}-${number}`;
  return name;
}
