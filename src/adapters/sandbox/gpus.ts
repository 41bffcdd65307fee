import { accessSync, constants, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { sandboxUser } from "./identity.js";

/** One GPU as its device file tells of it. */
export interface Gpu {
  /** NVIDIA: the number in its file's name. AMD: in the order of its files. */
  readonly number: number;
  /** On this machine, `/dev/nvidia0` or `/dev/dri/renderD128`. */
  readonly node: string;
  /** As the driver names it; null where it does not. */
  readonly model: string | null;
  /** By which CUDA knows it wherever it runs; null where the driver does not tell. */
  readonly uuid: string | null;
}

/** What was found, all paths as they are on this machine. */
export interface FoundGpus {
  readonly vendor: "nvidia" | "amd" | "wsl" | null;
  readonly gpus: readonly Gpu[];
  /** Files and folders below /dev that every user of a GPU opens. */
  readonly control: readonly string[];
  /** Below /sys, where the driver's libraries look the devices up. */
  readonly system: readonly string[];
  /** What is there and cannot be used, and why. */
  readonly problems: readonly string[];
}

/**
 * Looks for GPUs by what lies below /dev, /proc and /sys; nothing is assumed. `root` stands for `/` in tests. Where several
 * vendors' are found, NVIDIA's are taken.
 */
export function findGpus(root = "/"): FoundGpus {
  const found = [nvidia(root), amd(root), wsl(root)];
  return found.find(({ gpus }) => gpus.length > 0) ?? { ...none, problems: found.flatMap(({ problems }) => problems) };
}

const none: FoundGpus = { vendor: null, gpus: [], control: [], system: [], problems: [] };

function nvidia(root: string): FoundGpus {
  const nodes = names(join(root, "dev")).flatMap((name) => {
    const number = /^nvidia(\d+)$/.exec(name)?.[1];
    return number === undefined ? [] : [{ number: Number(number), node: join("/dev", name) }];
  });
  if (nodes.length === 0) return none;
  const control = existing(root, ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps"].map(inDev));
  const missing = ["/dev/nvidiactl", "/dev/nvidia-uvm"].filter((path) => !control.includes(path));
  // `nvidia-modprobe` makes the files when the first program asks; inside of a sandbox nobody can.
  if (missing.length > 0)
    return { ...none, problems: [`${missing.join(" and ")}: not there, although ${nodes.length} GPUs are; run nvidia-modprobe -u -c 0`] };
  const told = nvidiaInformation(root);
  const known = nodes.map(({ number, node }) => ({ number, node, model: null, uuid: null, ...told.get(number) }));
  return { vendor: "nvidia", control, system: [], ...usable(root, known) };
}

/** By device number, from the driver's own words. */
function nvidiaInformation(root: string): Map<number, Pick<Gpu, "model" | "uuid">> {
  const folder = join(root, "proc/driver/nvidia/gpus");
  const all = names(folder).flatMap((bus) => {
    const text = read(join(folder, bus, "information"));
    const number = /^Device Minor:\s*(\d+)\s*$/m.exec(text)?.[1];
    const uuid = /^GPU UUID:\s*(GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\s*$/im.exec(text)?.[1] ?? null;
    const model = /^Model:\s*(.+?)\s*$/m.exec(text)?.[1] ?? null;
    return number === undefined ? [] : [[Number(number), { model, uuid }] as const];
  });
  return new Map(all);
}

const amdVendor = "0x1002";

function amd(root: string): FoundGpus {
  if (existing(root, ["/dev/kfd"]).length === 0) return none;
  const nodes = names(join(root, "dev/dri"))
    // A render node may be of any vendor's.
    .filter((name) => /^renderD\d+$/.test(name) && read(join(root, "sys/class/drm", name, "device/vendor")).trim() === amdVendor)
    .sort((a, b) => Number(a.slice(7)) - Number(b.slice(7)));
  const gpus = nodes.map((name, number) => {
    const model = read(join(root, "sys/class/drm", name, "device/product_name")).trim();
    return { number, node: join("/dev/dri", name), model: model === "" ? null : model, uuid: null };
  });
  const system = existing(root, ["/sys/class/kfd", "/sys/devices/virtual/kfd"]);
  return { vendor: "amd", control: ["/dev/kfd"], system, ...usable(root, gpus) };
}

/** Windows shows all its GPUs through one file: they cannot be told apart, and count as one. */
function wsl(root: string): FoundGpus {
  const nodes = existing(root, ["/dev/dxg"]);
  const gpus = nodes.map((node) => ({ number: 0, node, model: "of Windows", uuid: null }));
  return { vendor: "wsl", control: [], system: [], ...usable(root, gpus) };
}

function usable(root: string, all: readonly Gpu[]): Pick<FoundGpus, "gpus" | "problems"> {
  const closed = all.filter(({ node }) => !mayOpen(join(root, node)));
  const user = sandboxUser()?.uid ?? process.getuid?.() ?? 0;
  return {
    gpus: all.filter((gpu) => !closed.includes(gpu)).sort((a, b) => a.number - b.number),
    problems: closed.map(({ node }) => `${node}: user ${user}, as whom stages run, may not open it; chmod o+rw ${node}, or a rule of udev`),
  };
}

/** Whether the user of sandboxed stages may read and write it. */
function mayOpen(path: string): boolean {
  try {
    const user = sandboxUser();
    if (user !== null) return (statSync(path).mode & 0o006) === 0o006;
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function inDev(name: string): string {
  return join("/dev", name);
}

function existing(root: string, paths: readonly string[]): string[] {
  return paths.filter((path) => statSync(join(root, path), { throwIfNoEntry: false }) !== undefined);
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
