import { realpath, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import type { ContractForm } from "./contract.js";
import { alwaysSkipped, entryAt, type FolderEntry, listFolder, listUnignored } from "./folder-files.js";
import { normalizePath, pathMatcher } from "./globs.js";
import { filesNamedBy } from "./pack-commands.js";

export const contractFile = "environment.yaml";

/** A file of a candidate folder: its path inside the surface, and inside the environment's folder. */
export interface SurfaceFile {
  readonly path: string;
  readonly source: string;
  readonly bytes: number;
  readonly executable: boolean;
}

/** A regular file of the pack. `source` differs from `path` where a link inside the pack leads to another file of it. */
export interface PackFile {
  readonly path: string;
  readonly source: string;
  readonly bytes: number;
  readonly executable: boolean;
}

/** Something in the folder that cannot be frozen. */
export interface Intruder {
  readonly path: string;
  readonly what: string;
  /** Where a link leads; null for other things. */
  readonly leadsTo: string | null;
}

/** What lies in an environment's folder, sorted by what it is for. */
export interface PackLayout {
  readonly folder: string;
  /** The environment lies in the folder that it studies (`baseline: .`). */
  readonly own: boolean;
  /** All that is frozen, except for the contract itself, which is frozen in its canonical form. */
  readonly files: ReadonlyMap<string, PackFile>;
  readonly intruders: readonly Intruder[];
  /** What measures a candidate, or prepares its data: never editable, and never in a workspace. */
  readonly trusted: ReadonlySet<string>;
  /** What a workspace holds beside the candidate. */
  readonly context: readonly PackFile[];
  /** Paths that were left out because their names look like a secret's. */
  readonly secrets: readonly string[];
}

const secretFiles = pathMatcher([
  ...["**/.env", "**/.env.*", "**/*.pem", "**/*.key", "**/*.p12", "**/*.pfx", "**/id_rsa*", "**/id_ed25519*", "**/.netrc", "**/.npmrc"],
  ...["**/.pypirc", "**/.aws/**", "**/.ssh/**", "**/.gnupg/**", "**/credentials.json", "**/*.kubeconfig", "**/.git-credentials"],
]);

/** Sorts the files of an environment's folder. Reads names and sizes, no contents. */
export async function readLayout(folder: string, form: ContractForm): Promise<PackLayout> {
  const own = normalizePath(form.baseline) === ".";
  const entries = await listEntries(folder, form, own);
  const isData = dataMatcher(form);
  const kept = entries.filter((entry) => entry.path !== contractFile && !isData(entry.path));
  const secrets = own ? kept.filter((entry) => secretFiles(entry.path)).map((entry) => entry.path) : [];
  const isSecret = new Set(secrets);
  const { files, intruders } = await sortEntries(
    folder,
    kept.filter((entry) => !isSecret.has(entry.path)),
  );
  const trusted = trustedFiles(form, files);
  const editable = pathMatcher(form.surface.editable);
  const context = own ? [...files.values()].filter((file) => !editable(file.path) && !trusted.has(file.path)) : [];
  return { folder, own, files, intruders, trusted, context, secrets };
}

/**
 * A pack of its own is its whole folder, in git or out of it. A user's repository is what git does not ignore, and what
 * the contract names; with `surface.context` it is only what the contract names.
 */
async function listEntries(folder: string, form: ContractForm, own: boolean): Promise<FolderEntry[]> {
  if (!own) return listFolder(folder);
  const named = namedPaths(form);
  if (form.surface.context !== undefined) {
    const wanted = pathMatcher([...form.surface.editable, ...form.surface.context, ...(form.knowledge ?? []), ...named]);
    const all = await listFolder(folder, alwaysSkipped);
    const files = new Map(all.map((entry) => [entry.path, entry]));
    const commands = new Set(trustedCommands(form).flatMap((command) => filesNamedBy(command, files)));
    return all.filter((entry) => wanted(entry.path) || commands.has(entry.path));
  }
  const listed = (await listUnignored(folder)) ?? (await listFolder(folder));
  const known = new Set(listed.map((entry) => entry.path));
  const extra = [...named].filter((path) => !known.has(path)).map((path) => entryAt(folder, path));
  return [...listed, ...extra.filter((entry) => entry !== null)];
}

/** Files that the contract names by their path. */
function namedPaths(form: ContractForm): string[] {
  const { runtime, data } = form;
  const description = isDescriptionFile(form.description) ? form.description : undefined;
  const named = [description, runtime?.python?.lock, data?.prepare, data?.prepare_runtime, ...form.surface.editable];
  return named.filter((path) => path !== undefined).map(normalizePath);
}

/** A description is a file when it looks like one: a single word that ends like a text file. */
export function isDescriptionFile(description: string): boolean {
  return /^\S+\.(md|markdown|txt|rst)$/i.test(description);
}

function trustedCommands(form: ContractForm): string[] {
  const stages = form.stages.filter((stage) => stage.trust !== "candidate").map((stage) => stage.run);
  return [...stages, ...Object.values(form.playbook ?? {})];
}

/** Folder of the preparation's inputs: the script's own folder, unless that is the pack itself. */
export function preparationFolder(prepare: string): string | null {
  const path = normalizePath(prepare);
  const slash = path.lastIndexOf("/");
  return slash < 0 ? null : path.slice(0, slash);
}

function trustedFiles(form: ContractForm, files: ReadonlyMap<string, PackFile>): Set<string> {
  const trusted = new Set<string>([contractFile]);
  for (const path of [form.data?.prepare, form.data?.prepare_runtime, form.runtime?.python?.lock]) {
    if (path !== undefined) trusted.add(normalizePath(path));
  }
  const inputs = form.data?.prepare === undefined ? null : preparationFolder(form.data.prepare);
  for (const path of files.keys()) if (inputs !== null && path.startsWith(`${inputs}/`)) trusted.add(path);
  for (const command of trustedCommands(form)) for (const path of filesNamedBy(command, files)) trusted.add(path);
  return trusted;
}

/** Data is frozen apart from the pack, so that no stage sees what it should not. */
function dataMatcher(form: ContractForm): (path: string) => boolean {
  const folders = [form.data?.public, form.data?.inloop, form.data?.heldout].filter((path) => path !== undefined).map(normalizePath);
  const mounted = (form.mounts ?? []).map(({ source, target }) => target ?? source).filter((path) => !path.startsWith("/"));
  const bound = new Set(mounted.map(normalizePath));
  // What a mount brings into the workspace is bound there as it is, and so is no part of the pack; nor is a link in its place.
  return (path) => bound.has(path) || [...folders, ...bound].some((folder) => path.startsWith(`${folder}/`));
}

async function sortEntries(
  folder: string,
  entries: readonly FolderEntry[],
): Promise<{ files: Map<string, PackFile>; intruders: Intruder[] }> {
  const files = new Map<string, PackFile>();
  const intruders: Intruder[] = [];
  const links: FolderEntry[] = [];
  for (const entry of entries) {
    if (entry.kind === "file")
      files.set(entry.path, { path: entry.path, source: entry.path, bytes: entry.bytes, executable: entry.executable });
    else if (entry.kind === "link") links.push(entry);
    else intruders.push({ path: entry.path, what: "a socket, a FIFO or a device", leadsTo: null });
  }
  const real = new Set(files.keys());
  for (const link of links) {
    const followed = await followLink(folder, link.path);
    if ("what" in followed) intruders.push(followed);
    // A link must not bring in by another name what was left out: data, secrets, ignored files.
    else if (!real.has(followed.source))
      intruders.push({ path: link.path, what: "a symbolic link to a file that is no part of the pack", leadsTo: followed.source });
    else files.set(link.path, followed);
  }
  return { files, intruders };
}

/** A link to a regular file of the same folder stands for that file; every other link is an intruder. */
async function followLink(folder: string, path: string): Promise<PackFile | Intruder> {
  const target = await realpath(join(folder, path)).catch(() => null);
  if (target === null) return { path, what: "a symbolic link that leads nowhere", leadsTo: "nothing" };
  if (!target.startsWith(folder + sep)) return { path, what: "a symbolic link out of the environment's folder", leadsTo: target };
  const facts = await stat(target);
  if (!facts.isFile()) return { path, what: "a symbolic link to a folder", leadsTo: target };
  return { path, source: relative(folder, target), bytes: facts.size, executable: (facts.mode & 0o111) !== 0 };
}

/** The files of the candidate folder at `baseline` (or of a reference), by their paths inside the surface. */
export function candidateFiles(layout: PackLayout, form: ContractForm, baseline: string): { matching: SurfaceFile[]; others: string[] } {
  const folder = normalizePath(baseline);
  const prefix = folder === "." ? "" : `${folder}/`;
  const editable = pathMatcher(form.surface.editable);
  const matching: SurfaceFile[] = [];
  const others: string[] = [];
  for (const file of layout.files.values()) {
    if (!file.path.startsWith(prefix)) continue;
    const path = file.path.slice(prefix.length);
    if (editable(path)) matching.push({ path, source: file.path, bytes: file.bytes, executable: file.executable });
    else others.push(file.path);
  }
  return { matching, others };
}
