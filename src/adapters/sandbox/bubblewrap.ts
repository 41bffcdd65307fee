import type { StageExecution } from "../../core/ports/executor.js";

/** What this machine offers to the sandbox; found once by the probe. */
export interface BubblewrapFeatures {
  /** `--disable-userns` is known and works: processes inside cannot make namespaces of their own. */
  readonly disableUserns: boolean;
  /** Links at the root of the file system that lead into /usr, as [target, link]. */
  readonly rootLinks: readonly (readonly [target: string, link: string])[];
  /** Folders such as /lib that are real folders here, because /usr is not merged. */
  readonly rootFolders: readonly string[];
  /** Files and folders of the system, outside /usr, that programs cannot do without. */
  readonly systemFiles: readonly string[];
  /** Folder on the host with `passwd`, `group` and `hosts` made for the sandbox; null leaves them out. */
  readonly identityFolder: string | null;
}

/** What differs from one start to the next without being part of the execution. */
export interface StartDetails {
  /** File descriptor that receives bubblewrap's status documents, or null. */
  readonly statusFd: number | null;
  /** Set RLIMIT_NPROC inside the new user namespace, for machines where no cgroup counts processes. */
  readonly limitProcessesInside: boolean;
}

const identityFiles = ["passwd", "group", "hosts"] as const;

/** Environment of the process: sane defaults, then what the caller gave. */
export function stageEnvironment(execution: StageExecution): Record<string, string> {
  const threads = String(Math.max(1, Math.floor(execution.limits.cpus)));
  return {
    PATH: "/usr/bin:/bin",
    HOME: "/tmp",
    TMPDIR: "/tmp",
    USER: "trialist",
    LOGNAME: "trialist",
    LANG: "C.UTF-8",
    // Idle OpenMP threads must not spin: on a busy machine that costs a factor of thirty.
    OMP_WAIT_POLICY: "PASSIVE",
    OMP_NUM_THREADS: threads,
    OPENBLAS_NUM_THREADS: threads,
    MKL_NUM_THREADS: threads,
    NUMEXPR_NUM_THREADS: threads,
    ...execution.environment,
  };
}

function namespaceArguments(features: BubblewrapFeatures): string[] {
  return [
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    // Without this, a start by root could remount the root writable.
    ...["--cap-drop", "ALL"],
    ...["--unshare-user", "--uid", "1000", "--gid", "1000"],
    ...(features.disableUserns ? ["--disable-userns"] : []),
    ...["--hostname", "sandbox"],
  ];
}

function systemArguments(features: BubblewrapFeatures): string[] {
  const argv = ["--ro-bind", "/usr", "/usr"];
  for (const [target, link] of features.rootLinks) argv.push("--symlink", target, link);
  for (const folder of [...features.rootFolders, ...features.systemFiles]) argv.push("--ro-bind", folder, folder);
  if (features.identityFolder !== null) {
    for (const name of identityFiles) argv.push("--ro-bind", `${features.identityFolder}/${name}`, `/etc/${name}`);
  }
  return argv;
}

function temporaryFolder(size: number, path: string): string[] {
  // A tmpfs is memory: without a size, filling it would take half of the machine's.
  return ["--perms", "1777", "--size", String(size), "--tmpfs", path];
}

function depth(path: string): number {
  return path.split("/").filter((part) => part !== "").length;
}

function mountArguments(execution: StageExecution): string[] {
  // An outer folder first: mounted second, it would hide the one inside it.
  const outerFirst = [...execution.mounts].sort((a, b) => depth(a.target) - depth(b.target));
  return outerFirst.flatMap((mount) => [mount.mode === "read-write" ? "--bind" : "--ro-bind", mount.source, mount.target]);
}

function commandArguments(execution: StageExecution, details: StartDetails): string[] {
  if (!details.limitProcessesInside) return ["/bin/sh", "-c", execution.command];
  // dash calls this limit -p, bash -u; two of the counted processes are bubblewrap's own.
  const script = 'ulimit -u "$1" 2>/dev/null || ulimit -p "$1" || exit 125; exec /bin/sh -c "$2"';
  return ["/bin/sh", "-c", script, "limit", String(execution.limits.processes + 2), execution.command];
}

/** The arguments of `bwrap` for one execution. Pure: the same execution and features give the same arguments. */
export function bubblewrapArguments(
  execution: StageExecution,
  features: BubblewrapFeatures,
  details: StartDetails = { statusFd: null, limitProcessesInside: false },
): string[] {
  const environment = Object.entries(stageEnvironment(execution));
  return [
    ...namespaceArguments(features),
    ...(details.statusFd === null ? [] : ["--json-status-fd", String(details.statusFd)]),
    ...systemArguments(features),
    ...["--proc", "/proc", "--dev", "/dev"],
    ...(execution.devices ?? []).flatMap(({ source, target }) => ["--dev-bind", source, target]),
    ...temporaryFolder(execution.limits.diskBytes, "/dev/shm"),
    ...temporaryFolder(execution.limits.diskBytes, "/tmp"),
    ...mountArguments(execution),
    // Both are tmpfs too, and nobody would count what is written there.
    ...["--remount-ro", "/dev", "--remount-ro", "/"],
    ...["--chdir", execution.workingDirectory],
    "--clearenv",
    ...environment.flatMap(([name, value]) => ["--setenv", name, value]),
    "--",
    ...commandArguments(execution, details),
  ];
}
