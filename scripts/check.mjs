#!/usr/bin/env node
// Runs every check:… script of package.json, also after one has failed, so that one look shows all there is to mend.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { installNpmPackages } from "./set-up/npm-packages.mjs";
import { npm, root, runAsMain } from "./set-up/step.mjs";

runAsMain(import.meta.url, () => {
  installNpmPackages();
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const checks = Object.keys(scripts).filter((name) => name.startsWith("check:"));
  const failed = checks.filter((name) => {
    console.log(`\n── ${name}`);
    const [command, ...args] = npm("run", "--silent", name);
    return spawnSync(command, args, { cwd: root, stdio: "inherit" }).status !== 0;
  });
  if (failed.length === 0) return console.log(`\ncheck: all ${checks.length} passed`);
  console.log(`\ncheck: failed: ${failed.join(", ")}`);
  process.exitCode = 1;
});
