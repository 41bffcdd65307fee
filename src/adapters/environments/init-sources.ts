import { open } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import type { FolderEntry } from "./folder-files.js";

/** Most of a source file that is looked at, in bytes. */
const readBytes = 256 * 1024;

/** Most files of a program that are followed from its script. */
const followedFiles = 20;

/** The first part of a text file; empty for what cannot be read or is no text. Never through a link that leaves the listed files. */
export async function readSource(folder: string, path: string): Promise<string> {
  const file = await open(join(folder, path), "r").catch(() => null);
  if (file === null) return "";
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(readBytes), 0, readBytes, 0);
    const text = buffer.toString("utf8", 0, bytesRead);
    return text.includes("\0") ? "" : text;
  } catch {
    return "";
  } finally {
    await file.close();
  }
}

export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** A script and the files of the same folder that it imports, and that those import: the script first. */
export async function programOf(folder: string, script: string, files: readonly FolderEntry[]): Promise<SourceFile[]> {
  const known = new Set(files.filter((entry) => entry.kind === "file").map((entry) => entry.path));
  const found = new Map<string, SourceFile>();
  const waiting = [script];
  for (let path = waiting.shift(); path !== undefined && found.size < followedFiles; path = waiting.shift()) {
    if (found.has(path)) continue;
    const text = await readSource(folder, path);
    found.set(path, { path, text });
    waiting.push(...(path.endsWith(".py") ? pythonImports(path, text, script, known) : scriptImports(path, text, known)));
  }
  return [...found.values()];
}

/** Folders that Python looks for modules in, as far as this folder can say: the script's own, the top, `src`. */
function pythonImports(path: string, text: string, script: string, known: ReadonlySet<string>): string[] {
  const roots = [...new Set([folderOf(script), "", "src/"])];
  const found: string[] = [];
  const statements = text.matchAll(/^[ \t]*(?:from[ \t]+(\.*)([A-Za-z_][\w.]*)?[ \t]+import[ \t]+\(?([^\n#;)]+)|import[ \t]+([^\n#;]+))/gm);
  for (const [, dots = "", from = "", names = "", plain] of statements) {
    const bases = dots === "" ? roots : [parentOf(path, dots.length)];
    const modules =
      plain === undefined ? [from, ...namesOf(names).map((name) => (from === "" ? name : `${from}.${name}`))] : namesOf(plain);
    for (const base of bases) for (const module of modules) found.push(...moduleFiles(base, module, known));
  }
  return found;
}

function namesOf(list: string): string[] {
  return list.split(",").flatMap((item) => /^\s*([A-Za-z_][\w.]*)/.exec(item)?.[1] ?? []);
}

function moduleFiles(base: string, module: string, known: ReadonlySet<string>): string[] {
  if (module === "") return [];
  const path = `${base}${module.replaceAll(".", "/")}`;
  return [`${path}.py`, `${path}/__init__.py`].filter((file) => known.has(file));
}

/** `import … from "./x.js"`, `require("./x")`, `source ./x.sh`. */
function scriptImports(path: string, text: string, known: ReadonlySet<string>): string[] {
  const named = [...text.matchAll(/(?:from|import|require)\s*\(?\s*["'](\.{1,2}\/[^"'\n]+)["']/g)].map(([, name = ""]) => name);
  const sourced = [...text.matchAll(/^\s*(?:\.|source|sh|bash)\s+["']?([\w./-]+\.(?:sh|bash))/gm)].map(([, name = ""]) => `./${name}`);
  return [...named, ...sourced].flatMap((name) => {
    const target = normalize(join(dirname(path), name));
    return ["", ".js", ".mjs", ".cjs", ".ts", "/index.js"].map((ending) => `${target}${ending}`).filter((file) => known.has(file));
  });
}

function folderOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "" : path.slice(0, slash + 1);
}

function parentOf(path: string, levels: number): string {
  let folder = folderOf(path);
  for (let level = 1; level < levels; level++) folder = folderOf(folder.replace(/\/$/, ""));
  return folder;
}
