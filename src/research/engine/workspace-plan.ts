import type { CandidateManifest } from "../../core/protocol/candidate.js";
import type { ContextFolder } from "./context-tree.js";

/** How a workspace comes to hold the context beside the candidate. Paths are relative to the workspace. */
export interface WorkspacePlan {
  /** Made anew, outer ones first. */
  readonly folders: readonly string[];
  /** The workspace's own: the stage may write them. */
  readonly copies: readonly string[];
  /** Second names of frozen files: the stage may read and replace them, never write into them. */
  readonly links: readonly string[];
  /** Mounted over the workspace: the context's entry read-only, or a folder of the workspace that lies inside of one. */
  readonly shown: readonly { readonly path: string; readonly from: "context" | "workspace" }[];
}

/** `private`: copies alone, where nothing can be mounted. `linked` and `copied`: what small files beside the candidate's become. */
export type Sharing = "private" | "linked" | "copied";

/** A context of up to this size is copied whole: then a stage may write everywhere, and it costs little. */
const smallContext = { files: 500, bytes: 16 * 2 ** 20 };
/** Mounting costs bubblewrap time that grows with the square of their number: so many cost some 10 ms. */
const shownAtMost = 64;
/** A larger file is mounted: linked, it would count against the stage's disk limit. */
const smallFileBytes = 256 * 1024;

/** Folders that hold a candidate's files, and the root. */
export function foldersOf(manifest: CandidateManifest): string[] {
  const folders = manifest.files.map(({ path }) => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ""));
  return [...new Set(["", ...folders])].sort();
}

/**
 * Plans a workspace. `candidate`: folders with the candidate's files; `writable`: folders that are the stage's own, with
 * all below. What else the context holds is shown read-only, a whole folder at once, so that a stage's start does not
 * grow with the size of the repository. Pure.
 */
export function planWorkspace(
  tree: ContextFolder,
  candidate: readonly string[],
  writable: readonly string[],
  sharing: Sharing,
): WorkspacePlan {
  const planning = new Planning(new Set([...candidate, ...writable]), new Set(writable), sharing);
  if (sharing === "private" || (tree.fileCount <= smallContext.files && tree.bytes <= smallContext.bytes)) planning.lay(tree, "", "copies");
  else planning.open(tree, "");
  return planning.planned();
}

interface Showable {
  readonly path: string;
  /** How many files it saves from being laid out one by one. */
  readonly weight: number;
  readonly lay: () => void;
}

class Planning {
  private readonly folders: string[] = [];
  private readonly files: Record<"copies" | "links", string[]> = { copies: [], links: [] };
  private readonly shown: { path: string; from: "context" | "workspace" }[] = [];
  private readonly showable: Showable[] = [];

  constructor(
    private readonly writable: ReadonlySet<string>,
    private readonly wholly: ReadonlySet<string>,
    private readonly sharing: Sharing,
  ) {}

  planned(): WorkspacePlan {
    this.folders.push(...this.wholly);
    const byWeight = [...this.showable].sort((a, b) => b.weight - a.weight);
    const room = Math.max(0, shownAtMost - this.shown.length);
    for (const { path } of byWeight.slice(0, room)) this.shown.push({ path, from: "context" });
    for (const { lay } of byWeight.slice(room)) lay();
    return { folders: this.folders, ...this.files, shown: this.shown };
  }

  /** A folder of the workspace's own, with the context's entries in it. */
  open(folder: ContextFolder, path: string): void {
    if (path !== "") this.folders.push(path);
    for (const [name, bytes] of folder.files) {
      const file = below(path, name);
      const lay = (): void => void this.files[this.laid].push(file);
      if (bytes > smallFileBytes) this.showable.push({ path: file, weight: 1, lay });
      else lay();
    }
    for (const [name, child] of folder.folders) this.place(child, below(path, name));
  }

  /** Every file of a folder, one by one. */
  lay(folder: ContextFolder, path: string, as: "copies" | "links"): void {
    if (path !== "") this.folders.push(path);
    for (const name of folder.files.keys()) this.files[as].push(below(path, name));
    for (const [name, child] of folder.folders) this.lay(child, below(path, name), as);
  }

  private get laid(): "copies" | "links" {
    return this.sharing === "linked" ? "links" : "copies";
  }

  private place(folder: ContextFolder, path: string): void {
    if (this.wholly.has(path)) return this.lay(folder, path, "copies");
    const inside = [...this.writable].filter((each) => each.startsWith(`${path}/`));
    if (this.writable.has(path)) return this.open(folder, path);
    if (inside.length === 0) {
      this.showable.push({ path, weight: folder.fileCount, lay: () => this.lay(folder, path, this.laid) });
      return;
    }
    const outermost = inside.filter((each) => !inside.some((other) => each.startsWith(`${other}/`)));
    const places = outermost.map((each) => ({ path: each, folder: folderAt(folder, each.slice(path.length + 1)) }));
    // Nothing can be mounted on what is not there, since the folder around it is read-only.
    const fits = this.shown.length + places.length < shownAtMost / 2 && places.every((each) => each.folder !== null);
    if (!fits) return this.open(folder, path);
    this.shown.push({ path, from: "context" });
    this.folders.push(path);
    for (const each of places) {
      this.shown.push({ path: each.path, from: "workspace" });
      if (each.folder !== null) this.place(each.folder, each.path);
    }
  }
}

function folderAt(folder: ContextFolder, path: string): ContextFolder | null {
  let found: ContextFolder | undefined = folder;
  for (const name of path.split("/")) found = found?.folders.get(name);
  return found ?? null;
}

function below(folder: string, name: string): string {
  return folder === "" ? name : `${folder}/${name}`;
}
