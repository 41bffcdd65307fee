import { execFileSync, spawnSync } from "node:child_process";
import { chmod, readdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { completeAnswers, type InitAnswers, type InitResult, initEnvironment } from "../../src/adapters/environments/init.js";
import { snapshotSurface } from "../../src/adapters/environments/workspace-files.js";
import { fill, temporaryFolder } from "./environment-fixture.js";
import { author, commit } from "./init-shapes.js";

const options = { force: false, pathVariable: "/usr/bin:/bin" };

async function init(folder: string, given: Partial<InitAnswers> = {}): Promise<InitResult> {
  return initEnvironment(folder, await completeAnswers(folder, given), options);
}

const program = { "train.py": "print('score:', 1)\n" };

function git(folder: string, ...words: string[]): void {
  execFileSync("git", ["-C", folder, ...author, "-c", "protocol.file.allow=always", ...words], { stdio: "ignore" });
}

describe("what git knows is told", () => {
  test("uncommitted files, a few by name; they are part of the environment", async () => {
    const folder = await fill(await temporaryFolder(), program);
    commit(folder);
    await fill(folder, { "train.py": "print('score:', 2)\n", ...Object.fromEntries([1, 2, 3, 4, 5, 6].map((n) => [`new ${n}.txt`, "x"])) });
    const made = await init(folder);
    expect(made.notes.join("\n")).toMatch(
      /not committed: train\.py, new 1\.txt, new 2\.txt, new 3\.txt, new 4\.txt and 2 more; what is measured is the files as they lie/,
    );
    expect(made.environment.context.map((file) => file.path)).toContain("new 6.txt");
    const clean = await fill(await temporaryFolder(), program);
    commit(clean);
    expect((await init(clean)).notes.join("\n")).not.toContain("not committed");
  });

  test("a folder below the top of the repository", async () => {
    const top = await fill(await temporaryFolder(), { "lib/x.py": "", "work/train.py": "print('score:', 1)\n", "work/old.txt": "" });
    commit(top);
    await writeFile(join(top, "work/old.txt"), "changed");
    await writeFile(join(top, "lib/x.py"), "changed");
    const made = await init(join(top, "work"));
    expect(made.notes.join("\n")).toMatch(/the git repository is .*: only files below work are part/);
    expect(made.notes.join("\n")).toMatch(/not committed: old\.txt;/);
  });

  test("submodules: the files of one that is checked out are part of it, an empty one is named", async () => {
    const other = await fill(await temporaryFolder(), { "rules.py": "FACTOR = 2\n", "deep/more.py": "", ".gitignore": "*.tmp\n" });
    commit(other);
    const folder = await fill(await temporaryFolder(), { "train.py": "from vendored.rules import FACTOR\nprint('score:', FACTOR)\n" });
    commit(folder);
    git(folder, "submodule", "add", "-q", other, "vendored");
    git(folder, "submodule", "add", "-q", other, "never here");
    git(folder, "commit", "-q", "-m", "two submodules");
    git(folder, "submodule", "deinit", "-q", "-f", "never here");
    // What `apply` compares has no file of git in it either.
    const surface = await snapshotSurface(folder, { editable: ["vendored/**"], maxBytes: 2 ** 20 });
    expect([...surface.contents.keys()]).toEqual(["vendored/.gitignore", "vendored/deep/more.py", "vendored/rules.py"]);
    await fill(join(folder, "vendored"), { "rules.py": "FACTOR = 3\n", "cache.tmp": "" });
    const made = await init(folder, { edit: ["train.py"] });
    expect(made.notes.join("\n")).toMatch(/the submodule never here was never checked out .* `git submodule update --init`/);
    const paths = made.environment.context.map((file) => file.path);
    expect(paths.filter((path) => path.startsWith("vendored/"))).toEqual([
      "vendored/.gitignore",
      "vendored/deep/more.py",
      "vendored/rules.py",
    ]);
    expect(paths.some((path) => path.startsWith("never here"))).toBe(false);
  });

  test("a repository that merely lies in the folder is part of it too", async () => {
    const folder = await fill(await temporaryFolder(), { ...program, "clone/a.py": "", "clone/b.tmp": "", "clone/.gitignore": "*.tmp\n" });
    execFileSync("git", ["init", "-q", folder]);
    execFileSync("git", ["init", "-q", join(folder, "clone")]);
    const paths = (await init(folder, { edit: ["train.py"] })).environment.context.map((file) => file.path);
    expect(paths.filter((path) => path.startsWith("clone/"))).toEqual(["clone/.gitignore", "clone/a.py"]);
  });

  test("git is asked a few times, however many files there are", async () => {
    const [bin, log] = [await temporaryFolder(), join(await temporaryFolder(), "calls")];
    await writeFile(join(bin, "git"), `#!/bin/sh\necho "$*" >> '${log}'\nexec /usr/bin/git "$@"\n`);
    await chmod(join(bin, "git"), 0o755);
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`pkg/m${index}.py`, `x = ${index}\n`]));
    const folder = await fill(await temporaryFolder(), { ...program, ...many });
    commit(folder);
    const before = process.env.PATH;
    onTestFinished(() => {
      process.env.PATH = before;
    });
    process.env.PATH = `${bin}${delimiter}${before}`;
    await init(folder);
    const calls = (await readFile(log, "utf8")).trim().split("\n");
    expect(calls.length).toBeGreaterThan(3);
    expect(calls.length).toBeLessThan(20);
  });
});

const pointer = (name: string): string => `version https://git-lfs.github.com/spec/v1\noid sha256:${name.padEnd(64, "0")}\nsize 123456\n`;

describe("Git LFS pointers", () => {
  test("in place of data are refused by name, and nothing is written", async () => {
    const folder = await fill(await temporaryFolder(), {
      ...program,
      ".gitattributes": "*.csv filter=lfs diff=lfs merge=lfs -text\n",
      "tables/train ü.csv": pointer("a"),
      "tables/test.csv": "x,y\n1,2\n",
    });
    const before = (await readdir(folder)).sort();
    await expect(init(folder)).rejects.toThrow(/Git LFS pointers in place of tables\/train ü\.csv\. .*`git lfs pull`/);
    expect((await readdir(folder)).sort()).toEqual(before);
  });

  test("in place of pictures are told of", async () => {
    const folder = await fill(await temporaryFolder(), {
      ...program,
      ".gitattributes": "*.png filter=lfs -text\n",
      "logo.png": pointer("b"),
    });
    expect((await init(folder)).notes.join("\n")).toContain("Git LFS has not brought logo.png");
  });

  test("without the attribute such a text is a text", async () => {
    const folder = await fill(await temporaryFolder(), { ...program, "about.csv": pointer("c") });
    expect((await init(folder)).notes.join("\n")).not.toContain("LFS");
  });
});

const isRoot = process.getuid?.() === 0;
const mayMount = spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status === 0;

test.runIf(!isRoot || mayMount)("a repository that cannot be written is refused with what to do, and nothing is half written", async () => {
  const folder = await fill(await temporaryFolder(), program);
  commit(folder);
  if (isRoot) {
    execFileSync("mount", ["--bind", folder, folder]);
    execFileSync("mount", ["-o", "remount,ro,bind", folder]);
  } else await chmod(folder, 0o555);
  try {
    await expect(init(folder)).rejects.toThrow(
      /a folder that environment\.yaml can be written to; found .*Nothing was written\. Copy the repository .*trialist init COPY/,
    );
    expect((await readdir(folder)).sort()).toEqual([".git", "train.py"]);
  } finally {
    if (isRoot) execFileSync("umount", [folder]);
    else await chmod(folder, 0o755);
  }
});

describe("odd names", () => {
  test("spaces, quotes, other letters and what globs and shells act on", async () => {
    const folder = await fill(join(await temporaryFolder(), "ein Ordner – ü & 'Co'"), {
      "train it's (1) ü.py": "import json\nrows = open('the data $x/a.csv').read()\nprint('score:', 1)\n",
      "the data $x/a.csv": "1",
      ".gitignore": "the data*\n",
    });
    commit(folder);
    const { environment } = await init(folder);
    expect(environment.baseline.map((file) => file.path)).toEqual(["train it's (1) ü.py"]);
    expect(environment.environment.stages[0]?.run).toBe("python3 'train it'\\''s (1) ü.py'");
    expect(environment.environment.mounts).toEqual([{ source: join(folder, "the data $x"), target: "the data $x", digest: "stat" }]);
  });

  test("a name with a line break is refused, quoted", async () => {
    const folder = await fill(await temporaryFolder(), { ...program, "bad\nname.txt": "" });
    commit(folder);
    await expect(init(folder)).rejects.toThrow(/the file name "bad\\nname\.txt" cannot be used/);
    expect(await readdir(folder)).not.toContain("environment.yaml");
  });

  test("a folder that is not there", async () => {
    const folder = join(await temporaryFolder(), "gone");
    await expect(init(folder)).rejects.toThrow(/expected an existing folder; found nothing there/);
  });

  test("sources that are no text, and project files that are none", async () => {
    const folder = await fill(await temporaryFolder(), {
      ...program,
      "other.py": "\0\0",
      "package.json": "{ no json",
      "pyproject.toml": "[project.scripts]\n= =\n",
    });
    expect((await init(folder, { edit: ["train.py"] })).environment.baseline.map((file) => file.path)).toEqual(["train.py"]);
  });
});
