import { existsSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { abandonedRuntimeFolders, isSupervised } from "../adapters/executors/abandoned.js";
import type { Host } from "./environments.js";
import { runKey } from "./executors.js";
import type { Project } from "./project.js";

/** A folder that may go. */
export interface UnneededFolder {
  readonly kind: "folders" | "leftovers" | "cache";
  readonly path: string;
}

/** What is known of this project's runs. */
export interface KnownRun {
  readonly name: string;
  readonly folder: string;
  readonly environmentDigest: string | null;
  readonly over: boolean;
  readonly owned: boolean;
}

/** A copy or a preparation that is being made looks like one that was left: it is, when nothing happened in it for so long. */
const leftAfterMs = 86_400_000;
/** Of looks, packets that are made, and packets that are measured again: with the process that works in it. */
const lookFolder = /-(?:look|pack|rescore)-(\d+)$/;

/** Scratch and executor folders of runs that are over, and of looks whose process is gone. */
export async function foldersOfEndedRuns(host: Host, runs: readonly KnownRun[]): Promise<UnneededFolder[]> {
  const ended = new Set(runs.filter((run) => run.over && !run.owned).map((run) => runKey(run.folder)));
  const found: UnneededFolder[] = [];
  for (const kind of ["scratch", "executors"] as const) {
    for (const name of namesIn(host.cache.folder(kind, ""))) {
      const look = lookFolder.exec(name);
      const left = ended.has(name) || (look !== null && !isAlive(Number(look[1])));
      if (left && !(await isSupervised(host.cache.folder("executors", name))))
        found.push({ kind: "folders", path: host.cache.folder(kind, name) });
    }
  }
  return found;
}

/** What processes that died in the middle of something left. */
export async function leftovers(project: Project, host: Host, now: number): Promise<UnneededFolder[]> {
  const broken = (["environments", "data", "calibrations"] as const).flatMap((kind) =>
    namesIn(host.cache.folder(kind, ""))
      .filter((name) => /\.partial$|\.damaged-[0-9a-f]+$/.test(name))
      .map((name) => host.cache.folder(kind, name)),
  );
  const runs = join(project.root, "runs");
  const imports = namesIn(runs).flatMap((name) => (/^\.(import|fork)-/.test(name) ? [join(runs, name)] : []));
  const abandoned = await abandonedRuntimeFolders(now, leftAfterMs);
  return [...[...broken, ...imports].filter((path) => isOlder(path, now, leftAfterMs)), ...abandoned].map((path) => ({
    kind: "leftovers",
    path,
  }));
}

/**
 * Parts of the cache that nothing used for so long. The cache is shared with other projects, whose runs are not known here:
 * what they miss is made again, or the run says that it is missing. What an open run of this project needs stays.
 */
export function unusedCache(host: Host, runs: readonly KnownRun[], now: number, olderThanMs: number): UnneededFolder[] {
  const digests = new Set(runs.map((run) => run.environmentDigest));
  const keys = new Set(runs.map((run) => runKey(run.folder)));
  const open = runs.some((run) => !run.over);
  const found = (
    kind: "environments" | "runtimes" | "data" | "digests" | "calibrations" | "scratch" | "executors",
    isUnneeded: (name: string) => boolean,
  ): UnneededFolder[] =>
    namesIn(host.cache.folder(kind, ""))
      .filter((name) => !name.endsWith(".lock") && isUnneeded(name) && isOlder(host.cache.folder(kind, name), now, olderThanMs))
      .map((name) => ({ kind: "cache", path: host.cache.folder(kind, name) }));
  return [
    ...found("environments", (name) => !digests.has(name)),
    // Which of these an open run needs is not written in its name.
    ...(open ? [] : [...found("runtimes", () => true), ...found("data", () => true)]),
    ...found("digests", () => true),
    ...found("calibrations", () => true),
    ...found("scratch", (name) => !keys.has(name)),
    ...found("executors", (name) => !keys.has(name)),
  ];
}

function isOlder(path: string, now: number, ms: number): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts !== undefined && now - facts.mtimeMs > ms;
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
