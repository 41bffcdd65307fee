import { chmod, lstat, mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { giveToSandbox, sandboxUser } from "../../src/adapters/sandbox/identity.js";
import { assertUsable, probeSandbox, type SandboxReport } from "../../src/adapters/sandbox/probe.js";

let folder: string;
const path = process.env["PATH"];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "trialist-probe-"));
});

afterEach(async () => {
  process.env["PATH"] = path;
  await rm(folder, { recursive: true, force: true });
});

async function withBubblewrap(script: string): Promise<SandboxReport> {
  await writeFile(join(folder, "bwrap"), `#!/bin/sh\n${script}\n`);
  await chmod(join(folder, "bwrap"), 0o755);
  await chmod(folder, 0o755);
  process.env["PATH"] = `${folder}:/usr/bin:/bin`;
  return probeSandbox();
}

test("this machine can be used, and every check says what it found", async () => {
  const report = await probeSandbox();
  expect(report.usable).toBe(true);
  expect(report.version).toMatch(/^\d+\.\d+/);
  for (const check of report.checks) expect(check.found, check.name).not.toBe("");
  for (const check of report.checks) expect(check.mend === "", check.name).toBe(check.ok);
});

test("without bubblewrap it says what to install", async () => {
  process.env["PATH"] = folder;
  const report = await probeSandbox();
  expect(report).toMatchObject({ usable: false, version: null });
  expect(report.checks[0]).toMatchObject({ name: "bubblewrap", ok: false, mend: expect.stringContaining("bubblewrap") });
  expect(() => assertUsable(report)).toThrow(/install/);
});

test("a bubblewrap that may make no namespaces is not usable", async () => {
  const report = await withBubblewrap(
    'if [ "$1" = --version ]; then echo bubblewrap 0.9.0; else echo "bwrap: setting up uid map: Permission denied" >&2; exit 1; fi',
  );
  expect(report.usable).toBe(false);
  expect(report.checks.find((check) => check.name === "namespaces")).toMatchObject({
    ok: false,
    found: "bwrap: setting up uid map: Permission denied",
    mend: expect.stringMatching(/./),
  });
  expect(() => assertUsable(report)).toThrow(expect.objectContaining({ name: "SandboxUnavailableError", kind: "infrastructure" }));
});

test("an old bubblewrap is used without what it does not know, and that is told", async () => {
  const report = await withBubblewrap(
    'case "$*" in *--version*) echo bubblewrap 0.4.1;; *--disable-userns*) echo "bwrap: Unknown option --disable-userns" >&2; exit 1;; esac',
  );
  expect(report).toMatchObject({ usable: true, features: { disableUserns: false } });
  expect(report.checks.find((check) => check.name === "nested namespaces")).toMatchObject({ ok: false, required: false });
});

test("a folder is given to the sandbox with all that is in it, and links are not followed", async () => {
  const outside = join(folder, "outside");
  const tree = join(folder, "tree");
  await writeFile(outside, "x", { mode: 0o600 });
  await mkdir(join(tree, "deep"), { recursive: true, mode: 0o700 });
  await writeFile(join(tree, "deep", "program"), "x", { mode: 0o700 });
  await symlink(outside, join(tree, "link"));
  await giveToSandbox(tree);
  const program = await stat(join(tree, "deep", "program"));
  expect(program.mode & 0o777).toBe(0o744);
  expect((await stat(join(tree, "deep"))).mode & 0o777).toBe(0o755);
  expect((await stat(outside)).mode & 0o777).toBe(0o600);
  const user = sandboxUser();
  if (user === null) return;
  expect(program.uid).toBe(user.uid);
  expect((await lstat(join(tree, "link"))).uid).toBe(user.uid);
  expect((await stat(outside)).uid).not.toBe(user.uid);
});
