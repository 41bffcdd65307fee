import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Mount } from "../../core/ports/executor.js";

/** A GPU driver's libraries, as programs inside find them. */
export interface GpuDrivers {
  /** What a sandbox does not show anyway. */
  readonly mounts: readonly Mount[];
  /** Folders that the system's loader does not know. */
  readonly searched: readonly string[];
  /** How many files of a driver the system's loader knows. */
  readonly known: number;
}

const driverLibrary = /^lib(cuda|nvidia-|nvcuvid|nvoptix|cudadebugger|hsa-runtime64|hsakmt|amdhip64|amd_comgr|drm_amdgpu|d3d12core|dxcore)/;

/** Where containers, cluster nodes, NixOS and WSL keep a driver that the loader was not told of. */
const usualFolders = [
  "/usr/lib/x86_64-linux-gnu",
  "/usr/lib/aarch64-linux-gnu",
  "/usr/lib64",
  "/usr/local/nvidia/lib64",
  "/usr/local/nvidia/lib",
  "/usr/lib/wsl/lib",
  "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
  "/run/nvidia/driver/usr/lib64",
  "/run/opengl-driver/lib",
  "/opt/rocm/lib",
];

/** `loaderCache`: what `ldconfig -p` prints. `root` stands for `/` in tests. */
export function findGpuDrivers(root = "/", loaderCache: string = askLoader()): GpuDrivers {
  const listed = loaderCache.split("\n").flatMap((line) => /^\s*(\S+) .*=> (\/\S.*)$/.exec(line)?.slice(1, 3) ?? []);
  const files = listed.flatMap((name, index) => (index % 2 === 0 && driverLibrary.test(name) ? [listed[index + 1] ?? ""] : []));
  const present = [...new Set(files)].filter((file) => existsSync(join(root, file)));
  const knownFolders = new Set(present.map((file) => dirname(file)));
  const searched = usualFolders.filter((folder) => !knownFolders.has(folder) && holdsDriver(join(root, folder)));
  const mounts = [
    ...present.flatMap((file) => fileMounts(root, file)),
    ...searched.filter(isHidden).map((folder) => mountAt(root, folder)),
  ];
  return { mounts: [...new Map(mounts.map((mount) => [mount.target, mount])).values()], searched, known: present.length };
}

/** A link and what it leads to, each where it is looked for. Not the folder: nobody knows what else is in it. */
function fileMounts(root: string, file: string): Mount[] {
  const real = root === "/" ? realpathSync(file) : file;
  return [...new Set([file, real])].filter(isHidden).map((path) => ({ ...mountAt(root, path), source: join(root, real) }));
}

function mountAt(root: string, path: string): Mount {
  return { source: join(root, path), target: path, mode: "read-only" };
}

/** Every sandbox shows /usr and the folders of the root that belong to it. */
function isHidden(path: string): boolean {
  return !/^\/(usr|bin|sbin|lib|lib32|lib64|libx32)\//.test(`${path}/`);
}

function holdsDriver(folder: string): boolean {
  try {
    return readdirSync(folder).some((name) => /^lib(cuda|amdhip64)\.so/.test(name));
  } catch {
    return false;
  }
}

function askLoader(): string {
  for (const program of ["/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"]) {
    try {
      return execFileSync(program, ["-p"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: 10_000, maxBuffer: 2 ** 26 });
    } catch {
      // Elsewhere, or none: musl has no such list.
    }
  }
  return "";
}
