import { accessSync, constants, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The limits and counters of one process tree, kept by the kernel. */
export interface ExecutionGroup {
  /** Folders that were made; written down before the start, so that a later process can clean up after a dead one. */
  readonly folders: readonly string[];
  /** Files that a process writes `0` to in order to join. */
  readonly joinFiles: readonly string[];
  limit(limits: { memoryBytes: number; tasks: number }): void;
  /** Null when nothing lists the members. */
  members(): number[] | null;
  cpuMs(): number | null;
  peakMemoryBytes(): number | null;
  /** Processes of the group that the kernel killed for lack of memory. */
  outOfMemoryKills(): number;
  /** Times that a new process or thread was refused. */
  processRefusals(): number;
  /** No new process from now on; then a kill cannot be outrun by a fork. */
  freezeForks(): void;
}

/** What this machine lets us count and limit by cgroup; the rest is polled. */
export interface CgroupSupport {
  readonly memory: "cgroup-v1" | "cgroup-v2" | null;
  readonly processes: boolean;
  readonly cpu: boolean;
  /** One line for a person. */
  readonly found: string;
  /** A group without limits; they are set before anything is started in it. */
  create(name: string): ExecutionGroup;
}

/** Removes groups whose processes have ended; a group that is still busy for a moment is tried again. */
export async function removeGroups(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    for (let attempt = 0; attempt < 200; attempt += 1) {
      try {
        rmdirSync(folder);
        break;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EBUSY") break;
        await new Promise((resolve) => setTimeout(resolve, 5 + attempt));
      }
    }
  }
}

/** Process ids in a group's folder; empty when the group is gone. */
export function groupMembers(folder: string): number[] {
  try {
    return readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function readNumber(file: string): number | null {
  try {
    const value = Number(readFileSync(file, "utf8").trim());
    return Number.isFinite(value) ? value : null;
  } catch {
    return null;
  }
}

/** A counter out of a file of `name value` lines. */
function readCounter(file: string, name: string): number {
  try {
    const line = readFileSync(file, "utf8")
      .split("\n")
      .find((text) => text.startsWith(`${name} `));
    return line === undefined ? 0 : Number(line.slice(name.length + 1));
  } catch {
    return 0;
  }
}

function writeIfThere(file: string, value: string): void {
  try {
    writeFileSync(file, value);
  } catch {
    // Swap accounting is a kernel option; without it there is no such file and nothing to limit.
  }
}

interface HierarchyMount {
  readonly kind: "cgroup" | "cgroup2";
  readonly root: string;
  readonly point: string;
  readonly options: readonly string[];
}

function hierarchies(): HierarchyMount[] {
  const mounts: HierarchyMount[] = [];
  for (const line of readFileSync("/proc/self/mountinfo", "utf8").split("\n")) {
    const [left, right] = line.split(" - ");
    const [, , , root, point] = (left ?? "").split(" ");
    const [kind, , options] = (right ?? "").split(" ");
    if ((kind !== "cgroup" && kind !== "cgroup2") || root === undefined || point === undefined) continue;
    mounts.push({ kind, root, point, options: (options ?? "").split(",") });
  }
  return mounts;
}

/** Folder of our own group in the hierarchy of a v1 controller, or of v2 for the empty name. */
function ownFolder(mounts: readonly HierarchyMount[], controller: string): string | null {
  const mount = mounts.find((one) =>
    controller === "" ? one.kind === "cgroup2" : one.kind === "cgroup" && one.options.includes(controller),
  );
  if (mount === undefined) return null;
  for (const line of readFileSync("/proc/self/cgroup", "utf8").split("\n")) {
    const [, names, ...rest] = line.split(":");
    if (names === undefined || !names.split(",").includes(controller)) continue;
    const path = rest.join(":");
    // In a container the path may be the host's while the mount begins at the container's own group.
    const relative = mount.root !== "/" && path.startsWith(mount.root) ? path.slice(mount.root.length) : path;
    return join(mount.point, relative);
  }
  return null;
}

function canMakeGroups(folder: string): boolean {
  const trial = join(folder, `trialist-probe-${process.pid}`);
  try {
    mkdirSync(trial);
    accessSync(join(trial, "cgroup.procs"), constants.W_OK);
    rmdirSync(trial);
    return true;
  } catch {
    return false;
  }
}

function versionOne(mounts: readonly HierarchyMount[]): CgroupSupport | null {
  const usable = (controller: string): string | null => {
    const folder = ownFolder(mounts, controller);
    return folder !== null && canMakeGroups(folder) ? folder : null;
  };
  const memory = usable("memory");
  const pids = usable("pids");
  const cpu = usable("cpuacct");
  if (memory === null && pids === null && cpu === null) return null;
  const names = [memory && "memory", pids && "pids", cpu && "cpuacct"].filter(Boolean).join(", ");
  return {
    memory: memory === null ? null : "cgroup-v1",
    processes: pids !== null,
    cpu: cpu !== null,
    found: `cgroup v1: ${names}`,
    create: (name) => createVersionOne({ memory, pids, cpu }, name),
  };
}

function createVersionOne(parents: { memory: string | null; pids: string | null; cpu: string | null }, name: string): ExecutionGroup {
  const make = (parent: string | null): string | null => {
    if (parent === null) return null;
    const folder = join(parent, name);
    mkdirSync(folder);
    return folder;
  };
  const memory = make(parents.memory);
  const pids = make(parents.pids);
  const cpu = make(parents.cpu);
  const folders = [memory, pids, cpu].filter((folder) => folder !== null);
  const listed = pids ?? memory ?? cpu;
  return {
    folders,
    // `tasks` moves one thread. `cgroup.procs` would take a lock over the whole machine, which costs 10 ms a start.
    joinFiles: folders.map((folder) => join(folder, "tasks")),
    limit: ({ memoryBytes, tasks }) => {
      if (memory !== null) {
        writeFileSync(join(memory, "memory.limit_in_bytes"), String(memoryBytes));
        writeIfThere(join(memory, "memory.memsw.limit_in_bytes"), String(memoryBytes));
      }
      if (pids !== null) writeFileSync(join(pids, "pids.max"), String(tasks));
    },
    members: () => (listed === null ? null : groupMembers(listed)),
    cpuMs: () => {
      const nanoseconds = cpu === null ? null : readNumber(join(cpu, "cpuacct.usage"));
      return nanoseconds === null ? null : nanoseconds / 1e6;
    },
    peakMemoryBytes: () => (memory === null ? null : readNumber(join(memory, "memory.max_usage_in_bytes"))),
    outOfMemoryKills: () => (memory === null ? 0 : readCounter(join(memory, "memory.oom_control"), "oom_kill")),
    processRefusals: () => (pids === null ? 0 : readCounter(join(pids, "pids.events"), "max")),
    freezeForks: () => {
      if (pids !== null) writeIfThere(join(pids, "pids.max"), "0");
    },
  };
}

/**
 * The nearest group above us that hands memory and pids on to its children and is ours to write. Our own group cannot
 * be it: it holds processes, and a v2 group with processes hands nothing on.
 */
function delegatingAncestor(own: string, top: string): string | null {
  for (let folder = own; folder.startsWith(top); folder = dirname(folder)) {
    try {
      const handedOn = readFileSync(join(folder, "cgroup.subtree_control"), "utf8").trim().split(/\s+/);
      // Moving a process needs the right to write in the lowest group that holds both its old and its new one.
      accessSync(join(folder, "cgroup.procs"), constants.W_OK);
      if (handedOn.includes("memory") && handedOn.includes("pids") && canMakeGroups(folder)) return folder;
    } catch {
      // Not readable or not ours: one higher up may still be.
    }
  }
  return null;
}

function versionTwo(mounts: readonly HierarchyMount[]): CgroupSupport | null {
  const mount = mounts.find((one) => one.kind === "cgroup2");
  const own = ownFolder(mounts, "");
  if (mount === undefined || own === null) return null;
  const parent = delegatingAncestor(own, mount.point);
  if (parent === null) return null;
  return {
    memory: "cgroup-v2",
    processes: true,
    cpu: true,
    found: `cgroup v2 under ${parent}`,
    create: (name) => createVersionTwo(parent, name),
  };
}

function createVersionTwo(parent: string, name: string): ExecutionGroup {
  const folder = join(parent, name);
  mkdirSync(folder);
  return {
    folders: [folder],
    joinFiles: [join(folder, "cgroup.procs")],
    limit: ({ memoryBytes, tasks }) => {
      writeFileSync(join(folder, "memory.max"), String(memoryBytes));
      writeIfThere(join(folder, "memory.swap.max"), "0");
      writeFileSync(join(folder, "pids.max"), String(tasks));
    },
    members: () => groupMembers(folder),
    cpuMs: () => readCounter(join(folder, "cpu.stat"), "usage_usec") / 1e3,
    peakMemoryBytes: () => readNumber(join(folder, "memory.peak")) ?? readNumber(join(folder, "memory.current")),
    outOfMemoryKills: () => readCounter(join(folder, "memory.events"), "oom_kill"),
    processRefusals: () => readCounter(join(folder, "pids.events"), "max"),
    freezeForks: () => writeIfThere(join(folder, "pids.max"), "0"),
  };
}

const nothing: CgroupSupport = {
  memory: null,
  processes: false,
  cpu: false,
  found: "no cgroup that we may write",
  create: () => ({
    folders: [],
    joinFiles: [],
    limit: () => undefined,
    members: () => null,
    cpuMs: () => null,
    peakMemoryBytes: () => null,
    outOfMemoryKills: () => 0,
    processRefusals: () => 0,
    freezeForks: () => undefined,
  }),
};

/** Looks for the best way that works here: v2 with memory and pids, else whatever v1 offers, else none. */
export function findCgroups(): CgroupSupport {
  try {
    const mounts = hierarchies();
    return versionTwo(mounts) ?? versionOne(mounts) ?? nothing;
  } catch {
    return nothing;
  }
}

/** For machines without cgroups, and for tests of what then happens. */
export const noCgroups: CgroupSupport = nothing;
