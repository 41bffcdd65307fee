import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type HookStart, startHook } from "./hook-process.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trialist-hook-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function hook(command: string, changes: Partial<HookStart> = {}): ReturnType<typeof startHook> {
  const environment = { PATH: process.env["PATH"] ?? "/usr/bin:/bin" };
  return startHook({ command, folder, environment, input: "{}\n", limitMs: 60_000, ...changes });
}

function isRunning(pid: string): boolean {
  return existsSync(`/proc/${pid}`) && !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}

describe("a hook", () => {
  it("reads the document, runs in the folder, and sees the given environment alone", async () => {
    const end = await hook("cat; pwd; env | sort | cut -d= -f1 | grep -v -e PWD -e SHLVL -e ^_; echo wrong >&2; exit 3").ended;
    expect(end).toMatchObject({ exitCode: 3, signal: null, timedOut: false, unstartable: null, omittedBytes: 0 });
    expect(end.output).toContain(`{}\n${folder}\nPATH\n`);
    expect(end.output).toContain("wrong\n");
  });

  it("ends at its limit with all that it started, even where that holds its output open", async () => {
    const end = await hook("sleep 300 & echo $!; exec sleep 300", { limitMs: 500 }).ended;
    expect(end).toMatchObject({ signal: "SIGKILL", timedOut: true });
    await expect.poll(() => isRunning(end.output.trim())).toBe(false);
  });

  it("does not wait for what left its group", async () => {
    const end = await hook("setsid sleep 20 & echo $!", { limitMs: 500 }).ended;
    process.kill(Number(end.output.trim()), "SIGKILL");
    expect(end).toMatchObject({ exitCode: 0, timedOut: true });
  });

  it("may leave its input unread, and print more than anybody keeps", async () => {
    const end = await hook("exec <&-; head -c 100000 /dev/zero | tr '\\0' a", { input: "x".repeat(2 ** 20) }).ended;
    expect(end).toMatchObject({ exitCode: 0, omittedBytes: 100_000 - 16 * 1024 });
    expect(end.output).toHaveLength(16 * 1024);
  });

  it("that cannot be started says so", async () => {
    expect((await hook("true", { folder: join(folder, "nowhere") }).ended).unstartable).toContain("ENOENT");
    expect((await hook("a\0b").ended).unstartable).toContain("null bytes");
  });
});
