import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findGpuDrivers } from "./gpu-drivers.js";
import { gpuPool } from "./gpu-pool.js";
import { findGpus } from "./gpus.js";

/** Machines as they look below /dev, /proc and /sys; the files are stand-ins, no driver is asked. */
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "trialist-devices-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function put(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    chmodSync(join(root, path), 0o666);
  }
}

const control = { "dev/nvidiactl": "", "dev/nvidia-uvm": "", "dev/nvidia-uvm-tools": "", "dev/nvidia-caps/nvidia-cap1": "" };
const uuid = (digit: number): string => `GPU-0000000${digit}-1111-2222-3333-444444444444`;
const information = (minor: number): string =>
  `Model: \t\t NVIDIA H200\nIRQ:   \t\t 100\nGPU UUID: \t ${uuid(minor)}\nDevice Minor: \t ${minor}\nGPU Excluded:\t No\n`;
const noDrivers = { mounts: [], searched: [], known: 0 };

function assigned(numbers: number[], sandbox: "bubblewrap" | "none" = "bubblewrap", drivers = noDrivers) {
  return gpuPool(findGpus(root), drivers, sandbox, root).assign(numbers);
}

describe("a machine", () => {
  it("without any has none, and a stray file is none", () => {
    expect(findGpus(root)).toMatchObject({ vendor: null, gpus: [], problems: [] });
    put({ "dev/nvidiactl": "", "dev/nvidia-uvm": "", "dev/nvidia": "", "dev/nvidia0x": "", "dev/dri/card0": "" });
    expect(findGpus(root)).toMatchObject({ vendor: null, gpus: [], problems: [] });
  });

  it("of NVIDIA's: each GPU by its file, named as the driver names it, whatever the order of the bus", () => {
    put({ ...control, "dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidia10": "" });
    put({
      "proc/driver/nvidia/gpus/0000:61:00.0/information": information(0),
      "proc/driver/nvidia/gpus/0000:18:00.0/information": information(1),
    });
    expect(findGpus(root)).toEqual({
      vendor: "nvidia",
      gpus: [
        { number: 0, node: "/dev/nvidia0", model: "NVIDIA H200", uuid: uuid(0) },
        { number: 1, node: "/dev/nvidia1", model: "NVIDIA H200", uuid: uuid(1) },
        { number: 10, node: "/dev/nvidia10", model: null, uuid: null },
      ],
      control: ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-caps"],
      system: [],
      problems: [],
    });
  });

  it("whose driver is not loaded, or whose files are closed to stages, says what to do", () => {
    put({ "dev/nvidia0": "", "dev/nvidiactl": "" });
    expect(findGpus(root)).toMatchObject({ gpus: [], problems: [expect.stringContaining("nvidia-modprobe")] });
    put({ ...control, "dev/nvidia1": "" });
    chmodSync(join(root, "dev/nvidia0"), 0o000);
    // Who is not root may open his own file in spite of nobody's permission; not this one.
    expect(findGpus(root)).toMatchObject({ gpus: [{ number: 1 }], problems: [expect.stringContaining("/dev/nvidia0: user")] });
  });

  it("of AMD's: render nodes of that vendor alone", () => {
    put({ "dev/kfd": "", "dev/dri/renderD128": "", "dev/dri/renderD129": "", "dev/dri/renderD130": "", "sys/class/kfd/topology": "" });
    for (const [node, vendor] of [
      ["renderD128", "0x8086"],
      ["renderD129", "0x1002"],
      ["renderD130", "0x1002"],
    ] as const)
      put({ [`sys/class/drm/${node}/device/vendor`]: `${vendor}\n` });
    expect(findGpus(root)).toMatchObject({
      vendor: "amd",
      gpus: [
        { number: 0, node: "/dev/dri/renderD129" },
        { number: 1, node: "/dev/dri/renderD130" },
      ],
      control: ["/dev/kfd"],
      system: ["/sys/class/kfd"],
    });
    expect(assigned([1])).toMatchObject({
      devices: [{ target: "/dev/kfd" }, { target: "/dev/dri/renderD130" }],
      mounts: [{ target: "/sys/class/kfd", mode: "read-only" }],
      environment: { ROCR_VISIBLE_DEVICES: "0", HIP_VISIBLE_DEVICES: "0" },
    });
    expect(assigned([1], "none")).toMatchObject({
      devices: [],
      mounts: [],
      environment: { ROCR_VISIBLE_DEVICES: "1", HIP_VISIBLE_DEVICES: "0" },
    });
  });

  it("of Windows: one, whatever is behind it", () => {
    put({ "dev/dxg": "" });
    expect(findGpus(root)).toMatchObject({ vendor: "wsl", gpus: [{ number: 0, node: "/dev/dxg" }] });
  });
});

describe("what is assigned", () => {
  it("is the GPU's file and those that all share; CUDA is told by UUID, else by the place inside", () => {
    put({ ...control, "dev/nvidia0": "", "dev/nvidia1": "", "proc/driver/nvidia/gpus/a/information": information(1) });
    const { devices, environment } = assigned([1]);
    expect(devices.map(({ target }) => target)).toEqual([...findGpus(root).control, "/dev/nvidia1"]);
    expect(devices.every(({ source, target }) => source === join(root, target))).toBe(true);
    expect(environment).toMatchObject({ CUDA_VISIBLE_DEVICES: uuid(1) });
    expect(assigned([0]).environment).toMatchObject({ CUDA_VISIBLE_DEVICES: "0" });
    expect(assigned([0, 1]).environment).toMatchObject({ CUDA_VISIBLE_DEVICES: "0,1" });
    expect(assigned([0, 1], "none").environment).toMatchObject({ CUDA_VISIBLE_DEVICES: "0,1" });
    // Of an owner before; it is not there any more.
    expect(assigned([7])).toMatchObject({ numbers: [7], environment: { CUDA_VISIBLE_DEVICES: "" } });
  });
});

describe("a driver's libraries", () => {
  it("are found by the loader's list; those outside of /usr are shown one by one", () => {
    put({ "usr/lib/libcuda.so.1": "", "opt/driver/libnvidia-ml.so.1": "", "opt/driver/secret": "", "opt/other/libm.so": "" });
    const list = [
      "300 libs found in cache `/etc/ld.so.cache'",
      "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1",
      "\tlibnvidia-ml.so.1 (libc6,x86-64) => /opt/driver/libnvidia-ml.so.1",
      "\tlibnvidia-gone.so.1 (libc6,x86-64) => /opt/driver/libnvidia-gone.so.1",
      "\tlibm.so (libc6,x86-64) => /opt/other/libm.so",
    ].join("\n");
    const source = join(root, "/opt/driver/libnvidia-ml.so.1");
    expect(findGpuDrivers(root, list)).toEqual({
      mounts: [{ source, target: "/opt/driver/libnvidia-ml.so.1", mode: "read-only" }],
      searched: [],
      known: 2,
    });
  });

  it("in the usual folders are found without the loader, and searched", () => {
    put({ "usr/local/nvidia/lib64/libcuda.so.1": "", "run/opengl-driver/lib/libcuda.so": "", "usr/lib64/libc.so": "" });
    const drivers = findGpuDrivers(root, "");
    expect(drivers.searched).toEqual(["/usr/local/nvidia/lib64", "/run/opengl-driver/lib"]);
    expect(drivers.mounts.map(({ target }) => target)).toEqual(["/run/opengl-driver/lib"]);
    put({ ...control, "dev/nvidia0": "" });
    expect(gpuPool(findGpus(root), drivers, "bubblewrap", root).assign([0]).environment).toMatchObject({
      LD_LIBRARY_PATH: "/usr/local/nvidia/lib64:/run/opengl-driver/lib",
    });
  });

  it("behind a link out of /usr are shown where they really are", () => {
    const file = join(root, "real", "libcuda.so.1");
    put({ "real/libcuda.so.1": "" });
    symlinkSync(file, join(root, "libcuda.so.1"));
    const { mounts } = findGpuDrivers("/", `\tlibcuda.so.1 (libc6) => ${join(root, "libcuda.so.1")}`);
    expect(mounts.filter(({ target }) => target.startsWith(root))).toEqual([
      { source: file, target: join(root, "libcuda.so.1"), mode: "read-only" },
      { source: file, target: file, mode: "read-only" },
    ]);
  });
});
