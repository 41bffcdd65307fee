import { execFile } from "node:child_process";
import { existsSync, lstatSync, readFileSync, readlinkSync } from "node:fs";
import { promisify } from "node:util";
import type { StageExecution } from "../../core/ports/executor.js";
import { type BubblewrapFeatures, bubblewrapArguments } from "./bubblewrap.js";
import { type CgroupSupport, findCgroups } from "./cgroup.js";
import { SandboxUnavailableError } from "./errors.js";
import { sandboxUser } from "./identity.js";

/** One thing that was looked at. */
export interface SandboxCheck {
  readonly name: "bubblewrap" | "namespaces" | "nested namespaces" | "memory limit" | "process limit" | "user";
  readonly ok: boolean;
  /** A run cannot start without it; the others only weaken a guarantee, which is then recorded. */
  readonly required: boolean;
  readonly found: string;
  /** What to do when it is not ok; empty otherwise. */
  readonly mend: string;
}

/** What the sandbox can do on this machine. */
export interface SandboxReport {
  /** Every required check passed. */
  readonly usable: boolean;
  readonly version: string | null;
  readonly checks: readonly SandboxCheck[];
  readonly features: BubblewrapFeatures;
}

const run = promisify(execFile);

/** Throws with the first required check that failed. */
export function assertUsable(report: SandboxReport): void {
  const failed = report.checks.find((check) => check.required && !check.ok);
  if (failed === undefined) return;
  throw new SandboxUnavailableError({
    where: `sandbox, ${failed.name}`,
    expected: "that bubblewrap starts a process with all of its namespaces",
    found: failed.found,
    todo: failed.mend,
  });
}

/** The parts of the file system that a sandbox shows, as they are on this machine. */
function layout(): Pick<BubblewrapFeatures, "rootLinks" | "rootFolders" | "systemFiles"> {
  const rootLinks: [string, string][] = [];
  const rootFolders: string[] = [];
  for (const name of ["bin", "sbin", "lib", "lib32", "lib64", "libx32"]) {
    const path = `/${name}`;
    if (!existsSync(path)) continue;
    if (lstatSync(path).isSymbolicLink()) rootLinks.push([readlinkSync(path), path]);
    else rootFolders.push(path);
  }
  const wanted = ["/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs", "/etc/pki/tls/certs"];
  return { rootLinks, rootFolders, systemFiles: wanted.filter((path) => existsSync(path)) };
}

function trialExecution(): StageExecution {
  const limits = {
    wallMs: 10_000,
    cpuMs: 10_000,
    memoryBytes: 2 ** 28,
    cpus: 1,
    processes: 64,
    diskBytes: 2 ** 20,
    outputBytes: 2 ** 16,
  };
  return {
    id: "probe",
    command: "true",
    workingDirectory: "/tmp",
    environment: {},
    mounts: [],
    limits,
    graceMs: 0,
    outputFolder: null,
    outputs: [],
    collectInto: null,
    collectMaxBytes: 1,
    writableFolders: [],
    sandbox: "bubblewrap",
    keepHeadBytes: 1024,
    keepTailBytes: 1024,
  };
}

/** Runs `true` with the arguments of a real stage. Null when it works, else what was said. */
async function tryStart(features: BubblewrapFeatures): Promise<string | null> {
  try {
    await run("bwrap", bubblewrapArguments(trialExecution(), features), {
      timeout: 10_000,
      cwd: "/",
      ...(sandboxUser() ?? {}),
    });
    return null;
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    return (stderr ?? "").trim().split("\n")[0] || message;
  }
}

async function bubblewrapVersion(): Promise<string | null> {
  try {
    return (await run("bwrap", ["--version"], { timeout: 10_000 })).stdout.trim().replace(/^bubblewrap /, "");
  } catch {
    return null;
  }
}

function kernelSetting(name: string): string | null {
  try {
    return readFileSync(`/proc/sys/${name}`, "utf8").trim();
  } catch {
    return null;
  }
}

function inContainer(): boolean {
  return existsSync("/.dockerenv") || existsSync("/run/.containerenv");
}

/** What keeps namespaces from working, judged by the kernel's settings and not by the words of the message. */
function mendNamespaces(): string {
  if (kernelSetting("kernel/unprivileged_userns_clone") === "0") return "sysctl kernel.unprivileged_userns_clone=1";
  if (kernelSetting("user/max_user_namespaces") === "0") return "sysctl user.max_user_namespaces=10000";
  if (kernelSetting("kernel/apparmor_restrict_unprivileged_userns") === "1") {
    return (
      "sysctl kernel.apparmor_restrict_unprivileged_userns=0, " + "or install an AppArmor profile that grants userns to /usr/bin/bwrap"
    );
  }
  if (inContainer()) {
    return (
      "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined " +
      "--security-opt systempaths=unconfined, so that it may make namespaces and mount /proc"
    );
  }
  return "allow user, pid, network and mount namespaces in the kernel, then run: trialist doctor";
}

function installWord(): string {
  const managers = [
    ["/usr/bin/apt-get", "apt-get install bubblewrap"],
    ["/usr/bin/dnf", "dnf install bubblewrap"],
    ["/usr/bin/pacman", "pacman -S bubblewrap"],
    ["/sbin/apk", "apk add bubblewrap"],
    ["/usr/bin/zypper", "zypper install bubblewrap"],
  ] as const;
  const found = managers.find(([path]) => existsSync(path));
  return found === undefined ? "install bubblewrap with the system's package manager" : found[1];
}

function limitChecks(cgroups: CgroupSupport): SandboxCheck[] {
  const mend =
    "optional: give trialist a cgroup of its own, for example by starting it with " +
    "`systemd-run --user --scope -p Delegate=yes trialist …`; in a container mount cgroups writable";
  const rlimitInside = kernelCountsInsideNamespaces();
  return [
    {
      name: "memory limit",
      ok: cgroups.memory !== null,
      required: false,
      found: cgroups.memory ?? `${cgroups.found}; the tree's resident memory is polled`,
      mend: cgroups.memory === null ? mend : "",
    },
    {
      name: "process limit",
      ok: cgroups.processes || rlimitInside,
      required: false,
      found: cgroups.processes ? cgroups.found : rlimitInside ? "RLIMIT_NPROC inside the namespace" : "polled",
      mend: cgroups.processes || rlimitInside ? "" : mend,
    },
  ];
}

/** Since Linux 5.14 RLIMIT_NPROC counts per user namespace; before, it counted all processes of the real user. */
export function kernelCountsInsideNamespaces(): boolean {
  const [major = 0, minor = 0] = readFileSync("/proc/sys/kernel/osrelease", "utf8").split(".").map(Number.parseFloat);
  return major > 5 || (major === 5 && minor >= 14);
}

function userCheck(): SandboxCheck {
  const user = sandboxUser();
  const found =
    user === null
      ? `stages run as this user (${process.getuid?.()})`
      : `started by root: stages run as user ${user.uid}, who owns nothing else`;
  return { name: "user", ok: true, required: false, found, mend: "" };
}

/** Tries the sandbox with the arguments that a stage will really get. `trialist doctor` shows it; a run insists on it. */
export async function probeSandbox(options: { identityFolder?: string } = {}): Promise<SandboxReport> {
  const base = { ...layout(), identityFolder: options.identityFolder ?? null };
  const version = await bubblewrapVersion();
  const others = [...limitChecks(findCgroups()), userCheck()];
  if (version === null) {
    const missing: SandboxCheck = {
      name: "bubblewrap",
      ok: false,
      required: true,
      found: "no bwrap that can be run on the PATH",
      mend: installWord(),
    };
    return { usable: false, version, checks: [missing, ...others], features: { ...base, disableUserns: false } };
  }
  const strict = await tryStart({ ...base, disableUserns: true });
  const plain = strict === null ? null : await tryStart({ ...base, disableUserns: false });
  const checks: SandboxCheck[] = [
    { name: "bubblewrap", ok: true, required: true, found: version, mend: "" },
    {
      name: "namespaces",
      ok: plain === null,
      required: true,
      found: plain ?? "a process starts with namespaces of its own",
      mend: plain === null ? "" : mendNamespaces(),
    },
    {
      name: "nested namespaces",
      ok: strict === null,
      required: false,
      found: strict === null ? "switched off inside" : `cannot be switched off: ${strict}`,
      mend: strict === null ? "" : "optional: bubblewrap 0.8 or newer",
    },
  ];
  return {
    usable: plain === null,
    version,
    checks: [...checks, ...others],
    features: { ...base, disableUserns: strict === null },
  };
}
