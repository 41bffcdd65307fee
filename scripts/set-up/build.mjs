// TypeScript to JavaScript. The new dist takes the old one's place only when the compiler is content, so that a failed build
// leaves a working program and a running one never sees half of a build.
import { createHash } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { root, run, SetUpError, say, stamp, writeStamp } from "./step.mjs";

const step = "build";
const dist = join(root, "dist");
const program = "interfaces/cli/main.js";

export function build({ always = false } = {}) {
  const sources = digestOfSources();
  linkProgram();
  if (!always && stamp("build") === sources && existsSync(join(dist, program))) return say(step, "up to date");
  say(step, "compiling src into dist");
  const fresh = join(root, `.dist-${process.pid}`);
  const old = `${fresh}-old`;
  try {
    compileInto(fresh);
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(fresh, dist);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
    rmSync(old, { recursive: true, force: true });
  }
  writeStamp("build", sources);
}

/** `npx trialist` works in this folder too: npm links the programs of dependencies, never a package's own. */
function linkProgram() {
  const link = join(root, "node_modules", ".bin", "trialist");
  if (!existsSync(dirname(link))) return;
  rmSync(link, { force: true });
  symlinkSync(join("..", "..", "dist", program), link);
}

function compileInto(folder) {
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  if (!existsSync(compiler)) throw new SetUpError("the TypeScript compiler is not installed", "run: npm ci");
  if (!run(process.execPath, [compiler, "-p", "tsconfig.build.json", "--outDir", folder]).ok) {
    throw new SetUpError(
      "src does not compile; the compiler's words are above",
      "mend the sources; the last good build, if there was one, is still in dist",
    );
  }
  if (!existsSync(join(folder, program))) throw new SetUpError(`the build has no ${program}`, "is src/interfaces/cli/main.ts there?");
  chmodSync(join(folder, program), 0o755);
}

/** Contents, not times: a checkout gives old files new times, and a deleted file leaves none. */
function digestOfSources() {
  const sources = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const files = [...sources.sort(), join(root, "tsconfig.json"), join(root, "tsconfig.build.json"), join(root, "package-lock.json")];
  const hash = createHash("sha256");
  for (const file of files)
    hash
      .update(`${file.slice(root.length)}\0`)
      .update(readFileSync(file))
      .update("\0");
  return hash.digest("hex");
}
