import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandLine, commandLineWith, driven } from "../support/drive.js";
import { Lab, proposes, scriptedResearcher } from "../support/lab.js";

/** `apply --branch`: a commit with its evidence, beside whatever else is going on in the repository. */
const seed = 7;
const lab = new Lab();
/** Odd names on purpose: what git quotes, and what a shell would split. */
const odd = 'parts/wört "lich".sh';
const before = { "main.sh": "cat parts/*.sh > /dev/null\necho 'score: 1'\n", "parts/old.sh": "echo old\n", [odd]: "echo odd\n" };
const after = { "main.sh": "echo 'score: 2'\n", [odd]: "echo odder\n", "parts/deep/new.sh": "echo new\n" };
const surface = "deep/env/baseline";
const hypothesis = "faster\n\nSigned-off-by: somebody \u001b[31m";

beforeAll(async () => {
  const repository = lab.pack;
  const files: Record<string, string> = {
    ...Object.fromEntries(Object.entries(before).map(([path, text]) => [`${surface}/${path}`, text])),
    ...Object.fromEntries(
      Object.entries(scriptedResearcher(seed, [proposes({ ...after, "parts/old.sh": null }, hypothesis)])).map(([path, text]) => [
        `deep/env/${path}`,
        text,
      ]),
    ),
    "deep/env/environment.yaml": `schema: trialist/environment@1
name: parts
surface: { editable: ["main.sh", "parts/**"] }
stages: [{ name: run, run: sh main.sh }]
metrics: [{ name: score, direction: maximize, from: { stdout: "score: (\\\\d+)" } }]
noise: { calibrate: 2 }
promotion: { rule: any }
`,
    "README.md": "a repository\n",
  };
  lab.write(files);
  git(repository, "init", "-q", "-b", "main");
  git(repository, "config", "user.name", "Anna Operator");
  git(repository, "config", "user.email", "anna@example.org");
  git(repository, "add", "-A");
  git(repository, "commit", "-qm", "the baseline");
  const request = {
    seed,
    environmentFolder: join(repository, "deep/env"),
    budget: { trials: 1, costUsd: null, tokens: null, computeMs: null, wallMs: null },
  };
  await driven(lab, [
    { do: "create", name: "run", request },
    { do: "work", name: "run" },
  ]);
}, 120_000);
afterAll(() => lab.remove());

const home = { HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };

function git(folder: string, ...words: string[]): string {
  return execFileSync("git", ["-C", folder, ...words], {
    encoding: "utf8",
    env: { ...process.env, ...home },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

let copies = 0;
function copy(): string {
  copies += 1;
  const folder = join(lab.folder, `copy ${copies}\u00e9`);
  cpSync(lab.pack, folder, { recursive: true });
  git(folder, "update-index", "-q", "--refresh");
  return folder;
}

function apply(repository: string, ...words: string[]) {
  return commandLineWith(lab, { HOME: "/nonexistent" }, "apply", "run", "--to", join(repository, surface), ...words).ended;
}

/** Everything of a repository that is not to change: files, index, HEAD, and every reference but new ones. */
function footprint(repository: string): unknown {
  const files = readdirSync(repository, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes(`${repository}/.git`))
    .map((entry) => [join(entry.parentPath, entry.name), readFileSync(join(entry.parentPath, entry.name), "hex")]);
  return { files, index: readFileSync(join(repository, ".git/index"), "hex"), head: readFileSync(join(repository, ".git/HEAD"), "utf8") };
}

describe("apply --branch", () => {
  it("makes one commit with the candidate and its evidence, and touches nothing else", async () => {
    const repository = copy();
    writeFileSync(join(repository, surface, "main.sh"), "echo 'my work in progress'\n");
    writeFileSync(join(repository, "README.md"), "staged\n");
    git(repository, "add", "README.md");
    writeFileSync(join(repository, "untracked"), "mine\n");
    const was = footprint(repository);
    const { code, stdout, stderr } = await apply(repository, "--branch", "trialist/night", "--json");
    expect([code, stderr]).toEqual([0, ""]);
    const head = git(repository, "rev-parse", "HEAD").trim();
    const answer = JSON.parse(stdout) as { commit: string };
    expect(answer).toEqual({
      run: "run",
      trial: "t1",
      repository,
      branch: "trialist/night",
      commit: git(repository, "rev-parse", "trialist/night").trim(),
      parent: head,
      written: [`${surface}/main.sh`, `${surface}/parts/deep/new.sh`, `${surface}/${odd}`],
      removed: [`${surface}/parts/old.sh`],
    });
    expect(footprint(repository)).toEqual(was);
    expect(git(repository, "log", "-1", "--format=%P|%an <%ae>|%cn", "trialist/night").trim()).toBe(
      `${head}|Anna Operator <anna@example.org>|Anna Operator`,
    );
    expect(git(repository, "diff", "-z", "--name-status", head, "trialist/night").split("\0").filter(Boolean)).toEqual([
      "M",
      `${surface}/main.sh`,
      "A",
      `${surface}/parts/deep/new.sh`,
      "D",
      `${surface}/parts/old.sh`,
      "M",
      `${surface}/${odd}`,
    ]);
    for (const [path, text] of Object.entries(after)) expect(git(repository, "show", `trialist/night:${surface}/${path}`)).toBe(text);
    git(repository, "fsck", "--strict");
  });

  it("writes down what stands behind it, each fact on one line", async () => {
    const repository = copy();
    await apply(repository, "--branch", "evidence");
    const message = git(repository, "log", "-1", "--format=%B", "evidence");
    const chain = (JSON.parse((await commandLine(lab, "verify", "run", "--json").ended).stdout) as { chain: string }[])[0]?.chain;
    for (const line of [
      /^trialist: faster Signed-off-by: somebody .* \(score 2\)$/m,
      /^Run: run$/m,
      /^Trial: t1, keep$/m,
      /^Environment: parts [0-9a-f]{64}$/m,
      /^Baseline: 1, mean of 2 repetitions$/m,
      /^Estimate: 2, one measurement, not confirmed, no interval$/m,
      /^Verdict: .*gain \+1 over t0/m,
      /^Rule: any, level 0.05$/m,
      /^Confirmations: 0$/m,
      /^Caution: SELF-REPORTED/m,
      /^Spend of the run: 1 trial, /m,
      new RegExp(`^Ledger: ${chain} after \\d+ events$`, "m"),
      /^See: trialist show run t1$/m,
    ])
      expect(message).toMatch(line);
    expect(message).not.toMatch(/^Signed-off-by/m);
    expect(message).not.toContain("\u001b");
  });

  it("uses an identity of its own where the repository has none", async () => {
    const repository = copy();
    git(repository, "config", "--unset", "user.email");
    expect((await apply(repository, "--branch", "anonymous")).code).toBe(0);
    expect(git(repository, "log", "-1", "--format=%an <%ae> %cn <%ce>", "anonymous").trim()).toBe(
      "trialist <trialist@localhost> trialist <trialist@localhost>",
    );
  });

  it("runs no program that the repository names", async () => {
    const repository = copy();
    const witness = join(repository, "witness");
    const trap = join(repository, "trap.sh");
    writeFileSync(trap, `#!/bin/sh\necho "$0 $*" >> '${witness}'\ncat\n`);
    chmodSync(trap, 0o755);
    const hooks = join(repository, ".git/hooks");
    for (const name of ["reference-transaction", "post-commit", "pre-commit", "post-index-change", "post-checkout", "commit-msg"])
      cpSync(trap, join(hooks, name));
    const settings: readonly [string, string][] = [
      ["core.fsmonitor", trap],
      ["core.hooksPath", hooks],
      ["filter.evil.clean", trap],
      ["filter.evil.smudge", trap],
      ["filter.evil.process", trap],
      ["diff.external", trap],
      ["gpg.program", trap],
      ["commit.gpgSign", "true"],
      ["core.pager", trap],
      ["core.editor", trap],
    ];
    for (const [key, value] of settings) git(repository, "config", key, value);
    writeFileSync(join(repository, ".gitattributes"), "* filter=evil diff=evil\n");
    writeFileSync(join(repository, ".git/info/attributes"), "* filter=evil text eol=crlf\n");
    const { code, stderr } = await apply(repository, "--branch", "safe");
    expect([code, stderr]).toEqual([0, ""]);
    expect(existsSync(witness)).toBe(false);
    for (const [key] of settings) git(repository, "config", "--unset", key);
    for (const name of readdirSync(hooks)) rmSync(join(hooks, name));
    expect(git(repository, "show", `safe:${surface}/main.sh`)).toBe(after["main.sh"]);
  });

  it("does not move a branch that exists, and takes no name that git would not", async () => {
    const repository = copy();
    git(repository, "branch", "taken");
    const head = git(repository, "rev-parse", "HEAD");
    for (const [name, reason] of [
      ["taken", /taken, which does/],
      ["main", /main, which does/],
      ["main/below", /git update-ref/],
      ["-x", /./],
      ["a..b", /a name that git accepts/],
      ["@{-1}", /a name that git accepts/],
      ["with space", /a name that git accepts/],
      ["HEAD", /a name that git accepts/],
      ["@", /a name that git accepts/],
      ["refs/heads/x", /a name that git accepts/],
      ["new\nline", /a name that git accepts/],
    ] as const) {
      const { code, stderr } = await apply(repository, `--branch=${name}`);
      expect([name, code, stderr]).toEqual([name, 2, expect.stringMatching(reason)]);
    }
    expect(git(repository, "rev-parse", "taken", "main")).toBe(head + head);
    expect(git(repository, "for-each-ref", "--format=%(refname)").trim().split("\n")).toEqual(["refs/heads/main", "refs/heads/taken"]);
  });

  it("refuses where HEAD holds another baseline, and builds on the commit that holds it when told", async () => {
    const repository = copy();
    const start = git(repository, "rev-parse", "HEAD").trim();
    writeFileSync(join(repository, surface, "parts/old.sh"), "echo moved on\n");
    git(repository, "commit", "-qam", "moved on");
    const refused = await apply(repository, "--branch", "later");
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringMatching(/baseline in HEAD; found deep\/env\/baseline\/parts\/old\.sh.*--onto/s),
    ]);
    const wrong = await apply(repository, "--branch", "later", "--onto", "--help");
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/names none/)]);
    const made = JSON.parse((await apply(repository, "--branch", "later", "--onto", start, "--json")).stdout) as { parent: string };
    expect(made.parent).toBe(start);
  });

  const obstacles: readonly [what: string, put: (repository: string) => void, reason: RegExp][] = [
    [
      "a file of the baseline that is not committed",
      (at) => git(at, "rm", "-q", "--cached", join(surface, "main.sh")),
      /main\.sh, which is not in it/,
    ],
    [
      "a link in place of a file",
      (at) => {
        rmSync(join(at, surface, "main.sh"));
        symlinkSync("/etc/passwd", join(at, surface, "main.sh"));
        git(at, "add", surface);
      },
      /main\.sh, which is a link there/,
    ],
    [
      "another executable bit",
      (at) => {
        chmodSync(join(at, surface, "main.sh"), 0o755);
        git(at, "add", surface);
      },
      /executable bit differs/,
    ],
    [
      "a file where the candidate needs a folder",
      (at) => {
        writeFileSync(join(at, surface, "parts/deep"), "in the way\n");
        git(at, "add", surface);
      },
      /parts\/deep, which the run's baseline has not/,
    ],
    [
      "a file that the candidate would add",
      (at) => {
        mkdirSync(join(at, surface, "parts/deep"));
        writeFileSync(join(at, surface, "parts/deep/new.sh"), "another one\n");
        git(at, "add", surface);
      },
      /parts\/deep\/new\.sh, which the run's baseline has not/,
    ],
    [
      "a submodule in the surface",
      (at) => {
        const commit = git(at, "rev-parse", "HEAD").trim();
        git(at, "rm", "-rq", "--cached", join(surface, "parts"));
        git(at, "update-index", "--add", "--cacheinfo", `160000,${commit},${surface}/parts`);
      },
      /lies in the submodule deep\/env\/baseline\/parts/,
    ],
  ];

  it.each(obstacles)("refuses %s: no branch is made", async (_what, put, reason) => {
    const repository = copy();
    put(repository);
    git(repository, "commit", "-qm", "moved on");
    const { code, stderr } = await apply(repository, "--branch", "refused");
    expect([code, stderr]).toEqual([2, expect.stringMatching(reason)]);
    expect(git(repository, "branch", "--list", "refused")).toBe("");
  });

  it("says what is missing outside a repository, in one without a commit, without git, and for the baseline", async () => {
    const plain = join(lab.folder, "plain");
    cpSync(join(lab.pack, "deep"), join(plain, "deep"), { recursive: true });
    expect((await apply(plain, "--branch", "b")).stderr).toMatch(/in the work tree of a git repository/);
    git(plain, "init", "-q");
    expect((await apply(plain, "--branch", "b")).stderr).toMatch(/current branch has no commit/);
    const repository = copy();
    const place = ["--to", join(repository, surface)];
    const { code, stderr } = await commandLine(lab, "apply", "run", "t0", "--branch", "b", ...place).ended;
    expect([code, stderr]).toEqual([2, expect.stringMatching(/t0, which is the baseline/)]);
    const bare = await commandLineWith(lab, { PATH: "/nonexistent" }, "apply", "run", "--branch", "b", ...place).ended;
    expect([bare.code, bare.stderr]).toEqual([2, expect.stringMatching(/expected git; found no such program/)]);
    expect((await apply(repository, "--onto", "HEAD")).stderr).toMatch(/--onto goes with --branch/);
  });
});

describe("apply without git", () => {
  it("writes where the files are the frozen baseline's, and refuses where they are not", async () => {
    const folder = join(lab.folder, "no-git");
    cpSync(join(lab.pack, surface), folder, { recursive: true });
    const into = () => commandLineWith(lab, { PATH: "/nonexistent" }, "apply", "run", "--to", folder).ended;
    writeFileSync(join(folder, "parts/old.sh"), "echo mine\n");
    const refused = await into();
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/parts\/old\.sh with other content/)]);
    expect(readFileSync(join(folder, "main.sh"), "utf8")).toBe(before["main.sh"]);
    writeFileSync(join(folder, "parts/old.sh"), before["parts/old.sh"] ?? "");
    expect((await into()).code).toBe(0);
    expect(readFileSync(join(folder, "main.sh"), "utf8")).toBe(after["main.sh"]);
    expect(existsSync(join(folder, "parts/old.sh"))).toBe(false);
  });
});
