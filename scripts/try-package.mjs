#!/usr/bin/env node
// Packs trialist, installs the package into an empty folder as a stranger would, and uses it there: help, doctor, and a run
// over a folder that holds nothing but one shell script.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { npm, root, runAsMain } from "./set-up/step.mjs";

const script = `#!/bin/sh
# The score is what this prints.
effort=3
echo "score: $((effort * effort))"
`;

/** A researcher with one idea. Not `echo`: some shells' turns the \n of the JSON into line breaks. */
const researcher = `command:cat > /dev/null; printf %s '${JSON.stringify({
  plan: { hypothesis: "more effort scores more" },
  files: { "train.sh": script.replace("effort=3", "effort=4") },
})}'`;

/** The path of a newcomer, command by command; each runs when the installed package has it. */
const journey = [
  ["init", "--yes", "--edit", "train.sh", "--run", "sh train.sh", "--metric", "score", "--direction", "maximize"],
  ["check", "."],
  ["run", ".", "--name", "first", "--researcher", researcher, "--max-trials", "1"],
  ["status", "first", "--json"],
  ["verify", "--all"],
];

runAsMain(import.meta.url, () => {
  const folder = mkdtempSync(join(tmpdir(), "trialist-package-"));
  try {
    tryPackage(folder);
    console.log("package: works when installed elsewhere");
  } catch (error) {
    console.error(`package: ${error.message}`);
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

function tryPackage(folder) {
  const packed = JSON.parse(must(root, "npm pack", npm("pack", "--json", "--silent", "--pack-destination", folder)));
  const [{ filename, files }] = Array.isArray(packed) ? packed : Object.values(packed);
  refuseStrays(files.map((file) => file.path));

  const place = join(folder, "elsewhere");
  mkdirSync(place);
  must(place, "npm init", npm("init", "-y"));
  must(place, "npm install of the package", npm("install", "--no-audit", "--no-fund", join(folder, filename)));
  const trialist = (...args) => must(place, `npx trialist ${args.join(" ")}`, npm("exec", "--no", "--", "trialist", ...args));

  const help = trialist("--help");
  const has = (command) => new RegExp(`^\\s+${command}\\b`, "m").test(help);
  if (has("doctor")) trialist("doctor");
  writeFileSync(join(place, "train.sh"), script);
  for (const [command, ...args] of journey) {
    if (!has(command)) return console.log(`package: no command ${command} yet, the rest of the journey is left out`);
    trialist(command, ...args);
  }
}

/** What has no place in a package, and what must be in it. */
function refuseStrays(paths) {
  const strays = paths.filter((path) => /(^|\/)(__pycache__|tests?|\.trialist)\/|\.(test|suite)\.|\.pyc$|^src\//.test(path));
  const needed = ["dist/interfaces/cli/main.js", "environments/flchain/environment.yaml", "LICENSE", "README.md"];
  const missing = needed.filter((path) => !paths.includes(path));
  if (strays.length > 0) throw new Error(`the package holds what it should not: ${strays.join(", ")}; see "files" in package.json`);
  if (missing.length > 0) throw new Error(`the package lacks ${missing.join(", ")}; see "files" in package.json`);
}

function must(cwd, what, [command, ...args]) {
  console.log(`package: ${what}`);
  const result = spawnSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], env: strangersEnvironment() });
  if (result.status === 0) return result.stdout;
  console.error(result.stdout);
  throw new Error(`${what} ended with ${result.status ?? result.signal ?? result.error?.message}`);
}

/** npm tells its scripts about the project that it runs them for; a stranger's shell knows nothing of this one. */
function strangersEnvironment() {
  const ours = /^npm_(config_local_prefix|package_|lifecycle_)|^INIT_CWD$|^VITEST/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}
