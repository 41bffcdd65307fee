import { lstat, opendir, realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, sep } from "node:path";
import type { FolderEntry } from "./folder-files.js";

/** A folder that a program reads and that is no part of the pack. */
export interface MountGuess {
  /** Relative to the environment's folder where it lies in it, else absolute. */
  readonly source: string;
  /** Place in the workspace, or the same absolute path. */
  readonly target: string;
  readonly why: string;
}

export interface DataFacts {
  readonly mounts: readonly MountGuess[];
  /** Ignored folders with files in them that no source names. */
  readonly unused: readonly string[];
}

/** Folders of tools and of results: a program writes them, or an interpreter brings them. */
const noData =
  /(^|\/)(\.[^/]*|node_modules|venv|env|conda-env|__pycache__|build|dist|target|out|outputs?|results?|runs?|logs?|checkpoints?|wandb|mlruns|lightning_logs|coverage|htmlcov|tmp|temp|site|[^/]*\.egg-info)$/i;
const dataName = /(^|\/)(data|datasets?|corpus|corpora|inputs?|raw|images|assets)$/i;
const dataFile = /\.(csv|tsv|parquet|feather|arrow|npy|npz|h5|hdf5|pt|pth|pkl|bin|jsonl|gz|zst|zip|tar|png|jpe?g|wav|mp3|txt|db|sqlite)$/i;

/** An unignored folder of data is bound instead of frozen from this size on. */
const boundBytes = 64 * 2 ** 20;
/** Most entries that are looked at in an ignored folder to see that it holds something. */
const seenEntries = 200;

/** What is known of a program before its data is looked for. */
export interface DataClues {
  /** The sources, configuration and command that may name it. */
  readonly texts: readonly string[];
  /** Whether the program is one of Node. */
  readonly nodeModules: boolean;
  /** Files that may be edited: what is bound read-only can hold none of them. */
  readonly edited: readonly string[];
}

/** What a program reads besides its pack. */
export async function findData(
  folder: string,
  files: readonly FolderEntry[],
  ignored: readonly string[],
  { texts, nodeModules, edited }: DataClues,
): Promise<DataFacts> {
  const named = namer(texts);
  const mounts: MountGuess[] = [];
  const unused: string[] = [];
  for (const entry of ignored) {
    const path = entry.replace(/\/$/, "");
    const target = await leadsTo(folder, path);
    if (target === null) continue;
    if (path === "node_modules" ? !nodeModules : noData.test(path) || (await isVirtual(target))) continue;
    if (!(await holdsFiles(target))) continue;
    const source = target === join(folder, path) ? path : target;
    if (path === "node_modules") mounts.push({ source, target: path, why: "the packages that Node imports; git ignores them" });
    else if (named(path)) mounts.push({ source, target: path, why: "a source names it and git ignores it" });
    else unused.push(path);
  }
  for (const link of files.filter((entry) => entry.kind === "link")) {
    const target = await leadsTo(folder, link.path);
    if (target === null || target.startsWith(folder + sep)) continue;
    mounts.push({ source: target, target: link.path, why: "a link that leads out of the folder" });
  }
  for (const path of bigDataFolders(files, edited))
    mounts.push({ source: path, target: path, why: "large files of data: bound, not copied" });
  mounts.push(...(await outside(folder, texts)));
  return { mounts: unique(mounts), unused };
}

/** Where a folder, or a link to one, really lies; null for files and for links that lead nowhere. */
async function leadsTo(folder: string, path: string): Promise<string | null> {
  const real = await realpath(join(folder, path)).catch(() => null);
  return real !== null && (await stat(real)).isDirectory() ? real : null;
}

async function isVirtual(folder: string): Promise<boolean> {
  for (const name of ["pyvenv.cfg", "conda-meta"]) if ((await lstat(join(folder, name)).catch(() => null)) !== null) return true;
  return false;
}

async function holdsFiles(folder: string): Promise<boolean> {
  let seen = 0;
  const visit = async (path: string): Promise<boolean> => {
    const entries = await opendir(path).catch(() => null);
    if (entries === null) return false;
    for await (const entry of entries) {
      if (++seen > seenEntries || entry.isFile()) return true;
      if (entry.isDirectory() && (await visit(join(path, entry.name)))) return true;
    }
    return false;
  };
  return visit(folder);
}

/** Whether a source names a folder: by its path as text, or by its last part as a word of its own between quotes or slashes. */
function namer(texts: readonly string[]): (path: string) => boolean {
  return (path) => {
    const last = path.split("/").at(-1) ?? path;
    const word = new RegExp(`["'\`/= ]${last.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}(["'\`/ ]|$)`, "m");
    return texts.some((text) => text.includes(`${path}/`) || word.test(text));
  };
}

/** The highest folders, not ignored, that hold mostly data and much of it, and nothing that may be edited. */
function bigDataFolders(files: readonly FolderEntry[], edited: readonly string[]): string[] {
  const sums = new Map<string, { bytes: number; data: number }>();
  for (const { path, bytes } of files) {
    for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
      const sum = sums.get(folder) ?? { bytes: 0, data: 0 };
      sums.set(folder, { bytes: sum.bytes + bytes, data: sum.data + (dataFile.test(path) ? bytes : 0) });
    }
  }
  const big = [...sums].filter(([folder, sum]) => sum.bytes > boundBytes && (dataName.test(folder) || sum.data > 0.9 * sum.bytes));
  const bound = big.filter(([folder]) => !edited.some((path) => path.startsWith(`${folder}/`)));
  const paths = bound.map(([folder]) => folder).sort((a, b) => a.length - b.length);
  return paths.filter((path, index) => !paths.slice(0, index).some((other) => path.startsWith(`${other}/`)));
}

/** Absolute paths in the sources that are folders of data on this machine. */
async function outside(folder: string, texts: readonly string[]): Promise<MountGuess[]> {
  const literals = texts.flatMap((text) =>
    [...text.matchAll(/(?:["'`=]|^|\s)(\/[A-Za-z0-9_][^"'`\n\s{}$*?<>|;&()]{2,300})/g)].map(([, path = ""]) => path),
  );
  const found: MountGuess[] = [];
  for (const literal of [...new Set(literals)].slice(0, 100)) {
    const place = await leadsTo("/", literal);
    const file = place === null ? await stat(literal).catch(() => null) : null;
    const target = place !== null ? literal.replace(/\/+$/, "") : file?.isFile() === true ? dirname(literal) : null;
    if (target === null || !isAbsolute(target) || !mayBind(target, folder)) continue;
    found.push({ source: target, target, why: "a source names it, and it lies outside of this folder" });
  }
  return found;
}

/** Never the system's folders, never a whole home or anything that holds this folder. */
function mayBind(path: string, folder: string): boolean {
  if (/^\/(usr|bin|lib\w*|sbin|etc|dev|proc|sys|run|boot|tmp|var)(\/|$)/.test(path) && !/^\/(tmp|var)\/[^/]+/.test(path)) return false;
  if (path.split("/").some((part) => part.startsWith("."))) return false;
  if (path.split("/").length < 3 || path.includes("..") || path === homedir()) return false;
  return path !== folder && !folder.startsWith(`${path}/`) && !path.startsWith(`${folder}/`);
}

function unique(mounts: readonly MountGuess[]): MountGuess[] {
  const byTarget = new Map(mounts.map((mount) => [mount.target, mount]));
  return [...byTarget.values()].filter(
    ({ target }) => ![...byTarget.keys()].some((other) => other !== target && target.startsWith(`${other}/`)),
  );
}
