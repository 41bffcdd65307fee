import { execFileSync } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadEnvironment } from "../../src/adapters/environments/load.js";
import { snapshotSurface } from "../../src/adapters/environments/workspace-files.js";
import { contractWith, fill, makePack, problemsOf, temporaryFolder } from "./environment-fixture.js";

describe("the editable surface", () => {
  test.each(["../solution.sh", "/etc/passwd", "a/../../x", "{..,x}/y", "!solution.sh", "~/x"])(
    "the glob %s leaves the folder",
    async (glob) => {
      const problems = await problemsOf(await makePack({ "environment.yaml": contractWith(["[solution.sh]", `["${glob}"]`]) }));
      expect(problems[0]).toMatchObject({ line: 6, column: 14, expected: "a glob that stays inside the folder" });
    },
  );

  test.each(["*.sh", "**", "e*", "evaluate.sh", "environment.yaml", "knowledge/*"])(
    "the glob %s matches what measures the candidate, or the pack",
    async (glob) => {
      const problems = await problemsOf(
        await makePack({ "environment.yaml": contractWith(["[solution.sh]", `[solution.sh, "${glob}"]`]) }),
      );
      expect(problems.map((problem) => problem.what).join()).toMatch(/the editable glob `.*` matches/);
    },
  );

  test("files of the baseline that no glob matches, no file at all, too large a file", async () => {
    const stray = await makePack({ "baseline/notes.txt": "x" });
    expect((await problemsOf(stray))[0]).toMatchObject({
      file: join(stray, "baseline/notes.txt"),
      todo: "add it to surface.editable, or move it out of that folder",
    });
    const none = await problemsOf(await makePack({ "baseline/solution.sh": null, "baseline/solutoin.sh": "x" }));
    expect(none.map((problem) => problem.todo)).toContain("did you mean `solutoin.sh`?");
    const large = await problemsOf(await makePack({ "baseline/solution.sh": "#".repeat(2000) }));
    expect(large[0]?.found).toBe("2000 bytes");
  });
});

describe("links and odd names", () => {
  test("a link in the surface, a link out of the pack, a broken one, one to a folder", async () => {
    const folder = await makePack();
    await symlink("../description.md", join(folder, "baseline/more.sh"));
    await symlink("/etc/hostname", join(folder, "host"));
    await symlink("nowhere", join(folder, "broken"));
    await symlink("knowledge", join(folder, "folder"));
    const found = new Map((await problemsOf(folder)).map((problem) => [problem.file.slice(folder.length + 1), problem]));
    expect(found.get("baseline/more.sh")?.what).toContain("symbolic link");
    expect(found.get("host")?.found).toContain("to /etc/hostname");
    expect(found.get("broken")?.found).toContain("leads nowhere");
    expect(found.get("folder")?.found).toContain("to a folder");
  });

  test("a link cannot bring labels in by another name", async () => {
    const folder = await makePack({
      "environment.yaml": contractWith(["playbook:", "data: { inloop: labels }\nplaybook:"]),
      "labels/answers.csv": "1\n",
    });
    await symlink("labels/answers.csv", join(folder, "innocent.csv"));
    expect((await problemsOf(folder))[0]?.found).toContain("a file that is no part of the pack");
  });

  test("a link to another file of the pack stands for that file", async () => {
    const folder = await makePack();
    await symlink("description.md", join(folder, "README.md"));
    const { files } = await loadEnvironment(folder);
    expect(files.find((file) => file.path === "README.md")).toMatchObject({ source: "description.md" });
  });

  test("a FIFO", async () => {
    const folder = await makePack();
    execFileSync("mkfifo", [join(folder, "pipe")]);
    expect((await problemsOf(folder))[0]?.found).toBe("a socket, a FIFO or a device");
  });

  test.each(["a\nb.txt", "bell\u0007.txt", "back\\slash.txt"])("the file name %j", async (name) => {
    const folder = await makePack();
    await writeFile(join(folder, name), "x");
    expect((await problemsOf(folder))[0]?.what).toContain("cannot be used");
  });

  test("names that are not UTF-8", async () => {
    const folder = await makePack();
    await writeFile(Buffer.concat([Buffer.from(`${folder}/bad-`), Buffer.from([0xff, 0xfe])]), "x");
    expect((await problemsOf(folder))[0]?.what).toContain("not valid UTF-8");
  });

  test("spaces and other scripts in names are names like others", async () => {
    const folder = await makePack({
      "environment.yaml": contractWith(
        ["[solution.sh]", '[solution.sh, "mes données/é ü.sh"]'],
        ["references: { other: references/other }\n", ""],
      ),
      "references/other/solution.sh": null,
      "baseline/mes données/é ü.sh": "true\n",
      "выводы 🙂.md": "x",
    });
    const loaded = await loadEnvironment(folder);
    expect(loaded.baseline.map((file) => file.path)).toEqual(["mes données/é ü.sh", "solution.sh"]);
    expect(loaded.files.map((file) => file.path)).toContain("выводы 🙂.md");
  });

  test("two names that differ in case or Unicode form alone", async () => {
    const folder = await makePack({
      "environment.yaml": contractWith(["[solution.sh]", "[solution.sh, Solution.sh]"]),
      "baseline/Solution.sh": "true\n",
    });
    expect((await problemsOf(folder)).map((problem) => problem.what).join()).toContain("differ only in case");
  });
});

test("locks: no registries, no package without a hash, the line is named", async () => {
  const lock = [
    "# comment",
    "--index-url https://user:secret@example.org/simple",
    "idna==3.10 \\",
    "    --hash=sha256:946d195a0d259cbba61165e88e65941f16e9b36ea6ddb97f00452bae8b1287d3",
    "six==1.17.0",
    "",
  ].join("\n");
  const folder = await makePack({
    "environment.yaml": contractWith(["playbook:", "runtime: { python: { lock: requirements.lock } }\nplaybook:"]),
    "requirements.lock": lock,
  });
  const problems = await problemsOf(folder);
  expect(problems.map((problem) => [problem.line, problem.what])).toEqual([
    [2, "the lock names a package registry"],
    [5, "a package without a hash"],
  ]);
  expect(JSON.stringify(problems)).not.toContain("secret@");
});

test("data: missing folders are named", async () => {
  const folder = await makePack({ "environment.yaml": contractWith(["playbook:", "data: { public: data/public }\nplaybook:"]) });
  expect((await problemsOf(folder))[0]).toMatchObject({ what: "there is no data in data/public", line: 20 });
});

const ownContract = `schema: trialist/environment@1
name: own
surface: { editable: [train.py] }
baseline: .
stages:
  - { name: run, run: python3 train.py, outputs: [answer.txt] }
  - { name: measure, trust: evaluator, run: python3 -m scoring.main }
metrics: [{ name: score, direction: maximize }]
`;

describe("an environment in the folder that it studies", () => {
  const files = {
    "environment.yaml": ownContract,
    "train.py": "",
    "lib/model.py": "",
    "scoring/main.py": "",
    "scoring/rules.py": "",
    ".gitignore": "big.bin\n*.log\n",
    "big.bin": "x",
    "a.log": "x",
    ".env": "KEY=1",
  };

  test("in git: what git does not ignore is laid beside the candidate, without the evaluator, the contract and secrets", async () => {
    const folder = await fill(await temporaryFolder(), { ...files, "node_modules/x/index.js": "", ".trialist/runs/x": "" });
    execFileSync("git", ["init", "-q", folder]);
    const loaded = await loadEnvironment(folder);
    expect(loaded.ownFolder).toBe(true);
    expect(loaded.context.map((file) => file.path)).toEqual([".gitignore", "lib/model.py", "scoring/rules.py"]);
    expect(loaded.baseline.map((file) => file.path)).toEqual(["train.py"]);
    expect(loaded.files.map((file) => file.path)).toContain("scoring/rules.py");
    expect(loaded.notes.join()).toContain(".env looks like a secret");
  });

  test("outside git: everything but what tools make", async () => {
    const folder = await fill(await temporaryFolder(), { ...files, "__pycache__/x.pyc": "" });
    const loaded = await loadEnvironment(folder);
    expect(loaded.context.map((file) => file.path)).toEqual([".gitignore", "a.log", "big.bin", "lib/model.py", "scoring/rules.py"]);
  });

  test("surface.context names exactly what is laid beside it", async () => {
    const text = ownContract.replace("[train.py] }", '[train.py], context: ["big.bin", "lib/**"] }');
    const folder = await fill(await temporaryFolder(), { ...files, "environment.yaml": text });
    execFileSync("git", ["init", "-q", folder]);
    const loaded = await loadEnvironment(folder);
    expect(loaded.context.map((file) => file.path)).toEqual(["big.bin", "lib/model.py"]);
  });

  test("the evaluator cannot be made editable", async () => {
    const folder = await fill(await temporaryFolder(), { ...files, "environment.yaml": ownContract.replace("[train.py]", '["**/*.py"]') });
    expect((await problemsOf(folder))[0]).toMatchObject({ line: 3, what: "the editable glob `**/*.py` matches scoring/main.py" });
  });
});

describe("a snapshot of a working tree", () => {
  const surface = { editable: ["*.py", "lib/**"], maxBytes: 100 };

  test("holds the matching files in order, with the executable bit", async () => {
    const folder = await fill(await temporaryFolder(), { "b.py": "b", "a.py": "a", "lib/x y.txt": "c", "other.txt": "d" });
    execFileSync("chmod", ["+x", join(folder, "b.py")]);
    const snapshot = await snapshotSurface(folder, surface);
    expect(snapshot.manifest.files.map((file) => [file.path, file.executable])).toEqual([
      ["a.py", false],
      ["b.py", true],
      ["lib/x y.txt", false],
    ]);
    expect(await snapshotSurface(folder, surface)).toEqual(snapshot);
  });

  test("refuses links, odd names, and too much", async () => {
    const folder = await fill(await temporaryFolder(), { "a.py": "a" });
    await symlink("/etc/passwd", join(folder, "b.py"));
    await expect(snapshotSurface(folder, surface)).rejects.toThrow(/regular files alone.*a symbolic link/);
    const linked = await fill(await temporaryFolder(), { "a.py": "a" });
    await mkdir(join(linked, "real"));
    await symlink("real", join(linked, "lib"));
    await expect(snapshotSurface(linked, { ...surface, editable: ["*.py", "lib", "lib/**"] })).rejects.toThrow(/a symbolic link/);
    const odd = await fill(await temporaryFolder(), { "a\n.py": "a" });
    await expect(snapshotSurface(odd, surface)).rejects.toThrow(/control character/);
    const large = await fill(await temporaryFolder(), { "a.py": "a".repeat(101) });
    await expect(snapshotSurface(large, surface)).rejects.toThrow(/101 bytes in 1 files/);
  });
});
