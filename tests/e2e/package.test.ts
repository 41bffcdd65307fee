import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

describe("the package", () => {
  test("holds the program and the environments, and nothing of the workshop", () => {
    const printed = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts", "--silent"], { cwd: root, encoding: "utf8" });
    const answer: unknown = JSON.parse(printed);
    const [packed] = Object.values(answer as Record<string, { readonly files: readonly { readonly path: string }[] }>);
    const paths = packed?.files.map((file) => file.path) ?? [];
    expect(paths).toContain("dist/interfaces/cli/main.js");
    expect(paths).toContain("environments/flchain/environment.yaml");
    expect(paths).toContain("LICENSE");
    expect(paths.filter((path) => /(^|\/)(__pycache__|tests?)\/|\.test\.|\.pyc$|^(src|scripts|bench)\//.test(path))).toEqual([]);
  });

  test("has a lock with a hash for every package and the host of none", () => {
    const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
      readonly packages: Readonly<Record<string, { readonly integrity?: string; readonly resolved?: string }>>;
    };
    const others = Object.entries(lock.packages).filter(([path]) => path !== "");
    expect(others.length).toBeGreaterThan(50);
    expect(others.filter(([, entry]) => entry.integrity === undefined).map(([path]) => path)).toEqual([]);
    expect(others.filter(([, entry]) => entry.resolved !== undefined).map(([path]) => path)).toEqual([]);
  });

  test("has exact versions only", () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Record<
      string,
      Record<string, string>
    >;
    const versions = Object.entries({ ...dependencies, ...devDependencies });
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });
});

/** Set-up on a machine that lacks everything: a fresh clone, and a PATH with nothing on it but Node.js and a feigned npm. */
describe("set-up", () => {
  const folders: string[] = [];

  function bareMachine(npmScript: string): {
    readonly clone: string;
    readonly setUp: () => { readonly code: number | null; readonly said: string };
  } {
    const folder = mkdtempSync(join(tmpdir(), "trialist-set-up-"));
    folders.push(folder);
    const clone = join(folder, "clone");
    const programs = join(folder, "bin");
    mkdirSync(clone);
    mkdirSync(programs);
    cpSync(join(root, "scripts"), join(clone, "scripts"), { recursive: true });
    for (const file of ["package.json", "package-lock.json"]) cpSync(join(root, file), join(clone, file));
    symlinkSync(process.execPath, join(programs, "node"));
    writeFileSync(join(programs, "npm"), `#!/bin/sh\n${npmScript}\n`);
    chmodSync(join(programs, "npm"), 0o755);
    const setUp = () => {
      const ended = spawnSync(process.execPath, ["scripts/setup.mjs"], { cwd: clone, env: { PATH: programs }, encoding: "utf8" });
      return { code: ended.status, said: ended.stderr };
    };
    return { clone, setUp };
  }

  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  test("says exactly what to install when it may not install it", () => {
    const { setUp } = bareMachine("exit 0");
    const { code, said } = setUp();
    expect(code).toBe(1);
    expect(said).toContain("missing on this machine: bubblewrap");
    expect(said).toMatch(/apt-get install -y --no-install-recommends bubblewrap/);
    expect(said).not.toContain("    at ");
  });

  test("installs the packages once, and again when the lock changes", () => {
    const { clone, setUp } = bareMachine('echo "$@" >> npm-calls');
    const calls = () => readFileSync(join(clone, "npm-calls"), "utf8").trim().split("\n");
    setUp();
    expect(setUp().said).toContain("npm packages: up to date");
    expect(calls()).toEqual(["ci --include=dev --no-audit --no-fund"]);
    writeFileSync(join(clone, "package-lock.json"), `${readFileSync(join(clone, "package-lock.json"), "utf8")}\n`);
    setUp();
    expect(calls()).toHaveLength(2);
  });

  test("says what to do when npm ci fails", () => {
    const { setUp } = bareMachine('echo "npm error no network"; exit 1');
    const { code, said } = setUp();
    expect(code).toBe(1);
    expect(said).toContain("npm error no network");
    expect(said).toContain("What to do: if it could not reach the registry");
  });
});
