import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RefusedError } from "../../core/protocol/errors.js";
import { git, tryGit } from "./git.js";

/** One entry of a commit's tree. */
export interface TreeEntry {
  readonly mode: string;
  readonly type: string;
  readonly id: string;
}

/** What a commit changes of its parent's tree; null removes the path. */
export type TreeChanges = ReadonlyMap<string, { readonly bytes: Uint8Array; readonly executable: boolean } | null>;

/** A git repository, by its objects and references alone: no method touches the working tree, its index or HEAD. */
export class GitRepository {
  private constructor(
    readonly root: string,
    /** Where the folder lies below the root: empty, or with a slash at its end. */
    readonly prefix: string,
    private readonly format: "sha1" | "sha256",
  ) {}

  /** The repository that a folder lies in. @throws RefusedError when it lies in none */
  static async around(folder: string): Promise<GitRepository> {
    await git(folder, ["--version"]);
    const root = await tryGit(folder, ["rev-parse", "--show-toplevel"]);
    if (!root.ok)
      throw new RefusedError({
        expected: "a folder in the work tree of a git repository",
        found: root.stderr.slice(0, 500),
        where: folder,
        todo: "Name one with --to, or apply without --branch.",
      });
    const prefix = await git(folder, ["rev-parse", "--show-prefix"]);
    const format = await git(folder, ["rev-parse", "--show-object-format"]);
    return new GitRepository(root.stdout, prefix, format === "sha256" ? "sha256" : "sha1");
  }

  /** The commit that a name stands for; null when there is none. */
  async commitNamed(name: string): Promise<string | null> {
    const { ok, stdout } = await tryGit(this.root, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`]);
    return ok && stdout !== "" ? stdout : null;
  }

  /** Every file, link and submodule of a commit below the folder, by its path from the root. */
  async entriesOf(commit: string): Promise<ReadonlyMap<string, TreeEntry>> {
    const below = this.prefix === "" ? [] : ["--", this.prefix];
    const listed = await git(this.root, ["ls-tree", "-r", "-z", "--full-tree", commit, ...below]);
    const entries = new Map<string, TreeEntry>();
    for (const line of listed.split("\0")) {
      const tab = line.indexOf("\t");
      const [mode = "", type = "", id = ""] = line.slice(0, tab).split(" ");
      if (tab > 0) entries.set(line.slice(tab + 1), { mode, type, id });
    }
    return entries;
  }

  /** The name that git gives these bytes, unfiltered. */
  blobId(bytes: Uint8Array): string {
    return createHash(this.format).update(`blob ${bytes.byteLength}\0`).update(bytes).digest("hex");
  }

  /** @throws RefusedError when git would not have a branch of that name, or has one */
  async refuseBranch(name: string): Promise<void> {
    const checked = await tryGit(this.root, ["check-ref-format", "--branch", name]);
    // Names such as @{-1} are accepted there and mean another branch. Where git takes @ and refs/… , others read HEAD and a
    // whole reference.
    if (!checked.ok || checked.stdout !== name || name === "@" || name.startsWith("refs/"))
      throw new RefusedError({
        expected: "a name that git accepts for a branch",
        found: JSON.stringify(name),
        todo: "`git check-ref-format --branch NAME` checks one.",
      });
    if ((await tryGit(this.root, ["show-ref", "--verify", "--quiet", `refs/heads/${name}`])).ok)
      throw new RefusedError({
        expected: "the name of a branch that does not exist",
        found: `${name}, which does`,
        where: this.root,
        todo: "Choose another name, or delete that branch first.",
      });
  }

  /** Makes a commit in an index of its own, and a branch that must be new. Returns the commit's name. */
  async commitOnBranch(branch: string, parent: string, changes: TreeChanges, message: string): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), "trialist-index-"));
    const variables = { GIT_INDEX_FILE: join(folder, "index") };
    try {
      await git(this.root, ["read-tree", parent], { variables });
      await git(this.root, ["update-index", "-z", "--index-info"], { variables, input: await this.indexInfo(changes) });
      const tree = await git(this.root, ["write-tree"], { variables });
      const identity = await this.fallbackIdentity();
      const commit = await git(this.root, ["commit-tree", "--no-gpg-sign", "-p", parent, "-F", "-", tree], {
        input: message,
        variables: identity,
      });
      const nothing = "0".repeat(commit.length);
      // An old value of zeros: a branch that somebody made meanwhile is refused, never moved.
      await git(this.root, ["update-ref", "--no-deref", "-m", "trialist apply", `refs/heads/${branch}`, commit, nothing], {
        variables: identity,
      });
      return commit;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  private async indexInfo(changes: TreeChanges): Promise<string> {
    const lines: string[] = [];
    for (const [path, change] of changes) {
      if (change === null) {
        lines.push(`0 ${this.blobId(new Uint8Array()).replaceAll(/./g, "0")}\t${path}\0`);
        continue;
      }
      const id = await git(this.root, ["hash-object", "-w", "--no-filters", "--stdin"], { input: change.bytes });
      lines.push(`${change.executable ? "100755" : "100644"} ${id}\t${path}\0`);
    }
    return lines.join("");
  }

  /** Nothing where the repository's user is configured; else an identity of ours, so that git guesses none from the host's name. */
  private async fallbackIdentity(): Promise<Record<string, string>> {
    const configured = async (key: string): Promise<boolean> => (await tryGit(this.root, ["config", "--get", key])).stdout.trim() !== "";
    if ((await configured("user.name")) && (await configured("user.email"))) return {};
    const [name, email] = ["trialist", "trialist@localhost"];
    return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email };
  }
}
