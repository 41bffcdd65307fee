// uv installs a Python runtime in seconds where pip takes a minute. It is a convenience: without it trialist uses pip.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheFolder } from "./cache-folder.mjs";
import { run, say } from "./step.mjs";
import { pythonForRuntimes } from "./system-packages.mjs";

const step = "uv";
const version = "0.13.9";
const patienceSeconds = 120;

export function provideUv() {
  const folder = join(cacheFolder(), "tools", "uv");
  const own = join(folder, "bin", "uv");
  const here = ["uv", own].map((uv) => ({ uv, answer: run(uv, ["--version"], { quiet: true }) })).find(({ answer }) => answer.ok);
  if (here !== undefined) {
    say(step, `${here.answer.standardOutput} is here`);
  } else {
    say(step, `installing uv ${version} into ${folder}`);
    if (!install(folder)) {
      rmSync(folder, { recursive: true, force: true });
      return say(step, "not to be had; runtimes will be made with pip, which takes longer");
    }
  }
  // What this process starts finds it there.
  if (here?.uv !== "uv") process.env.TRIALIST_UV ??= own;
}

function install(folder) {
  try {
    mkdirSync(folder, { recursive: true });
  } catch {
    return false;
  }
  const options = { quiet: true, timeoutSeconds: patienceSeconds };
  if (!run(pythonForRuntimes(), ["-m", "venv", "--clear", folder], options).ok) return false;
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", `uv==${version}`];
  return run(join(folder, "bin", "python"), pip, options).ok;
}
