import { expect, test } from "vitest";
import type { StageExecution } from "../../core/ports/executor.js";
import { type BubblewrapFeatures, bubblewrapArguments } from "./bubblewrap.js";
import { hostPath, onHostPaths } from "./host-paths.js";

const execution: StageExecution = {
  id: "m1.1/train",
  command: "python solution.py",
  workingDirectory: "/trialist/workspace",
  environment: { TRIALIST_DATA: "/trialist/workspace/data", PATH: "/trialist/workspace/bin:/usr/bin" },
  mounts: [
    { source: "/cache/data", target: "/trialist/workspace/data", mode: "read-only" },
    { source: "/cache/scratch", target: "/trialist/workspace", mode: "read-write" },
  ],
  limits: { wallMs: 1, cpuMs: 1, memoryBytes: 1, cpus: 0.5, processes: 30, diskBytes: 4096, outputBytes: 1 },
  graceMs: 1,
  outputFolder: null,
  outputs: [],
  collectInto: null,
  collectMaxBytes: 1,
  writableFolders: [],
  sandbox: "bubblewrap",
  keepHeadBytes: 1,
  keepTailBytes: 1,
};
const features: BubblewrapFeatures = {
  disableUserns: true,
  rootLinks: [["usr/bin", "/bin"]],
  rootFolders: [],
  systemFiles: [],
  identityFolder: null,
};

function joined(argv: readonly string[]): string {
  return ` ${argv.join(" ")} `;
}

test("every namespace, no rights, no environment, and the command at the end", () => {
  const argv = bubblewrapArguments(execution, features);
  for (const each of ["--unshare-all", "--die-with-parent", "--new-session", "--disable-userns", "--clearenv"])
    expect(argv).toContain(each);
  expect(joined(argv)).toContain(" --cap-drop ALL ");
  expect(argv.slice(-4)).toEqual(["--", "/bin/sh", "-c", "python solution.py"]);
  expect(argv).not.toContain("--share-net");
});

test("an outer mount comes before the one inside it", () => {
  const argv = joined(bubblewrapArguments(execution, features));
  const outer = argv.indexOf("--bind /cache/scratch /trialist/workspace ");
  expect(outer).toBeGreaterThan(0);
  expect(argv.indexOf("--ro-bind /cache/data /trialist/workspace/data ")).toBeGreaterThan(outer);
});

test("what is in memory has a size, and the roots are closed after all mounts", () => {
  const argv = joined(bubblewrapArguments(execution, features));
  expect(argv).toContain(" --size 4096 --tmpfs /tmp ");
  expect(argv).toContain(" --size 4096 --tmpfs /dev/shm ");
  expect(argv.indexOf("--remount-ro / ")).toBeGreaterThan(argv.lastIndexOf("bind "));
});

test("threads follow the processors, and the caller's variables win", () => {
  const argv = joined(bubblewrapArguments({ ...execution, environment: { OMP_NUM_THREADS: "3" } }, features));
  expect(argv).toContain(" --setenv MKL_NUM_THREADS 1 ");
  expect(argv).toContain(" --setenv OMP_NUM_THREADS 3 ");
});

test("without a sandbox, paths inside become paths of the host", () => {
  expect(hostPath(execution.mounts, "/trialist/workspace/data/x.csv")).toBe("/cache/data/x.csv");
  expect(hostPath(execution.mounts, "/trialist/workspace2")).toBe("/trialist/workspace2");
  const translated = onHostPaths(execution);
  expect(translated).toMatchObject({ sandbox: "none", workingDirectory: "/cache/scratch" });
  expect(translated.environment).toEqual({ TRIALIST_DATA: "/cache/data", PATH: "/cache/scratch/bin:/usr/bin" });
  for (const mount of translated.mounts) expect(mount.target).toBe(mount.source);
});
