import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";

const root = join(import.meta.dirname, "..", "..");
const cache = join(root, "node_modules", ".cache", "trialist", "test-build");
const keptMs = 24 * 3600 * 1000;

/**
 * The sources and the drivers of the tests as JavaScript, in a folder of their own: tests that start a hundred processes
 * cannot wait for a loader in each. Always what the sources say now, never an old `dist`; files are translated once.
 */
export function builtSources(): string {
  built ??= build();
  return built;
}

/** One build per test process, so that nobody's editing shows in the middle of a test. */
let built: string | undefined;

function build(): string {
  const files = sourceFiles();
  const name = digest([...files].map(([path, text]) => `${path}\n${text}`).join("\n"));
  const folder = join(cache, name);
  if (existsSync(folder)) return folder;
  removeOld();
  const draft = `${folder}.${process.pid}`;
  for (const [path, text] of files) write(join(draft, path.replace(/\.ts$/, ".js")), translated(path, text));
  copyFileSync(join(root, "package.json"), join(draft, "package.json"));
  // Beside the sources as in the package; a change of it is seen at once.
  symlinkSync(join(root, "researchers"), join(draft, "researchers"));
  try {
    renameSync(draft, folder);
  } catch {
    // Another test file was faster.
    rmSync(draft, { recursive: true, force: true });
  }
  return folder;
}

function sourceFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const folder of ["src", join("tests", "support")]) {
    for (const path of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).sort()) {
      if (!path.endsWith(".ts") || /\.(test|d)\.ts$/.test(path)) continue;
      files.set(join(folder, path), readFileSync(join(root, folder, path), "utf8"));
    }
  }
  return files;
}

function translated(path: string, text: string): string {
  const kept = join(cache, "files", `${digest(`${ts.version}\n${text}`)}.js`);
  if (existsSync(kept)) return readFileSync(kept, "utf8");

  const { outputText } = ts.transpileModule(text, {
    fileName: path,
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023, verbatimModuleSyntax: true },
  });
  const draft = `${kept}.${process.pid}`;
  write(draft, outputText);
  renameSync(draft, kept);
  return outputText;
}

function removeOld(): void {
  if (!existsSync(cache)) return;
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    if (name !== "files" && Date.now() - statSync(path).mtimeMs > keptMs) rmSync(path, { recursive: true, force: true });
  }
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 24);
}
