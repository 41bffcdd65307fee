import { Cache } from "../adapters/environments/cache.js";
import { findPython } from "../adapters/environments/python-interpreter.js";
import { probeSandbox } from "../adapters/sandbox/probe.js";
import { examineGpus } from "./gpus.js";

/** One thing that a run needs, as found on this machine. */
export interface MachineCheck {
  readonly name: string;
  readonly ok: boolean;
  /** Without it no run starts; what is not required weakens a guarantee or a feature. */
  readonly required: boolean;
  readonly found: string;
  readonly mend: string;
}

export async function examineMachine(variables: Readonly<Record<string, string | undefined>> = process.env): Promise<MachineCheck[]> {
  const sandbox = await probeSandbox();
  return [node(), ...sandbox.checks.map((check) => ({ ...check })), await python(), await cache(variables), examineGpus({ variables })];
}

function node(): MachineCheck {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const ok = major > 20 || (major === 20 && minor >= 19);
  return { name: "node", ok, required: true, found: process.versions.node, mend: ok ? "" : "Install Node.js 20.19 or newer." };
}

async function python(): Promise<MachineCheck> {
  try {
    const found = await findPython(">=3.9");
    return { name: "python", ok: true, required: false, found: `${found.executable} ${found.version}`, mend: "" };
  } catch (error) {
    return {
      name: "python",
      ok: false,
      required: false,
      found: error instanceof Error ? error.message : String(error),
      mend: "Environments with a Python runtime need one: `apt-get install python3 python3-venv`.",
    };
  }
}

async function cache(variables: Readonly<Record<string, string | undefined>>): Promise<MachineCheck> {
  try {
    return { name: "cache folder", ok: true, required: true, found: (await Cache.open(variables)).root, mend: "" };
  } catch (error) {
    return {
      name: "cache folder",
      ok: false,
      required: true,
      found: error instanceof Error ? error.message : String(error),
      mend: "Set TRIALIST_CACHE to a folder that you can write and others can enter.",
    };
  }
}
