import { execa } from "execa";
import { RefusedError } from "../../core/protocol/errors.js";

/** What a git command may be told beside its words. */
export interface GitCall {
  readonly input?: string | Uint8Array;
  readonly variables?: Readonly<Record<string, string>>;
}

export interface GitAnswer {
  /** Git is not installed. */
  readonly isMissing: boolean;
  readonly ok: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** Nothing of a repository's own configuration may run a program here: no hook, no monitor, no signature, no download. */
const settings = [
  ...["core.fsmonitor=false", "core.hooksPath=/dev/null", "commit.gpgSign=false", "core.quotePath=false"],
  ...["core.splitIndex=false", "core.sparseCheckout=false", "i18n.commitEncoding=UTF-8"],
].flatMap((setting) => ["-c", setting]);

/** Variables of git's own say where a repository is; here the folder says it. No transport is let through. */
function variablesOf(more: Readonly<Record<string, string>>): Record<string, string> {
  const own = Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined && !/^GIT_/.test(entry[0]));
  const quiet = { GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0", GIT_NO_LAZY_FETCH: "1", GIT_ALLOW_PROTOCOL: "none", LC_ALL: "C" };
  return { ...Object.fromEntries(own), ...quiet, ...more };
}

/** Runs git in a folder; what git refuses comes back as its words. */
export async function tryGit(folder: string, words: readonly string[], { input, variables = {} }: GitCall = {}): Promise<GitAnswer> {
  const { failed, code, stdout, stderr } = await execa("git", ["--no-pager", "--literal-pathspecs", ...settings, "-C", folder, ...words], {
    reject: false,
    extendEnv: false,
    env: variablesOf(variables),
    maxBuffer: 512 * 2 ** 20,
    ...(input === undefined ? { stdin: "ignore" as const } : { input }),
  });
  return { ok: !failed, isMissing: code === "ENOENT", stdout, stderr };
}

/** Runs git in a folder and must succeed. @throws RefusedError with git's words */
export async function git(folder: string, words: readonly string[], call: GitCall = {}): Promise<string> {
  const { ok, isMissing, stdout, stderr } = await tryGit(folder, words, call);
  if (ok) return stdout;
  if (isMissing) throw new RefusedError({ expected: "git", found: "no such program", todo: "Install git, or apply without --branch." });
  throw new RefusedError({
    expected: `git ${words[0] ?? ""} to succeed`,
    found: stderr.slice(0, 500),
    where: folder,
    todo: "Mend the repository, then try again; nothing was changed.",
  });
}
