#!/usr/bin/env node
// Set up, then all tests: Vitest's three projects and the environment packs' own, which are Python. What follows -- is handed
// on to Vitest, and then only Vitest runs: npm test -- --project unit
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, runAsMain } from "./set-up/step.mjs";
import { pythonForRuntimes } from "./set-up/system-packages.mjs";
import { setUp } from "./setup.mjs";

const resultsFile = join(root, "node_modules", ".cache", "trialist", "test-results.json");
const packTests = join("tests", "packs");

runAsMain(import.meta.url, () => {
  setUp();
  const chosen = process.argv.slice(2);
  const suites = [vitest(chosen)];
  if (chosen.length === 0 && existsSync(join(root, packTests))) suites.push(python());
  const sum = (key) => suites.reduce((total, suite) => total + suite[key], 0);
  const skipped = sum("skipped") > 0 ? `, ${sum("skipped")} skipped` : "";
  console.log(`\n${sum("passed")} passed, ${sum("failed")} failed${skipped}`);
  process.exit(suites.every((suite) => suite.ok) ? 0 : 1);
});

function vitest(args) {
  rmSync(resultsFile, { force: true });
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${resultsFile}`];
  const ended = spawnSync(process.execPath, ["node_modules/vitest/vitest.mjs", "run", ...reporters, ...args], {
    cwd: root,
    stdio: "inherit",
  });
  const ok = ended.status === 0;
  if (!existsSync(resultsFile)) return { ok, passed: 0, failed: ok ? 0 : 1, skipped: 0 };
  const results = JSON.parse(readFileSync(resultsFile, "utf8"));
  // A file that cannot even be loaded holds no test that failed; it counts as one.
  const unloaded = results.testResults.filter(
    (file) => file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
  );
  const failed = results.numFailedTests + unloaded.length;
  return {
    ok,
    passed: results.numPassedTests,
    failed: ok ? failed : Math.max(failed, 1),
    skipped: results.numPendingTests + results.numTodoTests,
  };
}

/** unittest closes with "Ran 12 tests in 0.1s" and "OK (skipped=1)" or "FAILED (failures=1, errors=2)", on standard error. */
function python() {
  console.log(`\npython3 -m unittest discover ${packTests}`);
  const args = ["-m", "unittest", "discover", "--pattern", "*_test.py", "--start-directory", packTests, "--top-level-directory", packTests];
  const environment = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
  const ended = spawnSync(pythonForRuntimes(), args, {
    cwd: root,
    env: environment,
    stdio: ["ignore", "inherit", "pipe"],
    encoding: "utf8",
  });
  process.stderr.write(ended.stderr);
  const number = (pattern) => Number(ended.stderr.match(pattern)?.[1] ?? 0);
  const skipped = number(/skipped=(\d+)/);
  const failures = number(/failures=(\d+)/) + number(/errors=(\d+)/);
  const ok = ended.status === 0;
  const failed = ok ? 0 : Math.max(failures, 1);
  return { ok, passed: Math.max(0, number(/^Ran (\d+) tests?/m) - failed - skipped), failed, skipped };
}
