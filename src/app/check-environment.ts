import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { readCandidate } from "../adapters/environments/freeze.js";
import { giveToSandbox } from "../adapters/sandbox/identity.js";
import { assertUsable, probeSandbox } from "../adapters/sandbox/probe.js";
import type { Executor } from "../core/ports/executor.js";
import { digestOf } from "../core/protocol/canonical.js";
import type { Stage } from "../core/protocol/environment.js";
import { AttemptFolders } from "../research/engine/attempt-folders.js";
import { stageExecution } from "../research/engine/stage-execution.js";
import { freezeFolder, type Host, type ReadyEnvironment, readyEnvironment } from "./environments.js";
import { withExecutor } from "./executors.js";
import { gpusFor } from "./gpus.js";

/** One thing that a candidate must not be able to do, with what happened when it was tried. */
export interface Proof {
  readonly name: string;
  readonly held: boolean;
  readonly detail: string;
}

export interface CheckedEnvironment {
  readonly name: string;
  readonly digest: string;
  readonly stages: readonly string[];
  readonly proofs: readonly Proof[];
}

/**
 * Validates an environment, makes its runtime and data ready, and proves by trying that a candidate of it cannot read
 * labels, reach the network, write the evaluator, see the host's home or environment, or leave a process behind.
 */
export async function checkEnvironment(host: Host, folder: string, progress: (line: string) => void): Promise<CheckedEnvironment> {
  const { loaded, frozen } = await freezeFolder(host, folder);
  assertUsable(await probeSandbox());
  gpusFor(frozen.environment, host, "bubblewrap");
  const key = `check-${process.pid}-${randomBytes(4).toString("hex")}`;
  return withExecutor(host, key, async ({ executor, scratch }) => {
    for (const note of loaded.notes) progress(note);
    const ready = await readyEnvironment(host, frozen, executor, "bubblewrap", progress);
    const candidate = await readCandidate(loaded.folder, loaded.baseline);
    const proofs: Proof[] = [];
    for (const [index, attack] of attacksOn(ready).entries()) {
      const output = await attempt(executor, host, ready, candidate, join(scratch, String(index)), `${key}/attack-${index}`, attack.script);
      proofs.push({ name: attack.name, ...attack.judge(output) });
    }
    proofs.push(await nothingLeft());
    return {
      name: frozen.environment.name,
      digest: frozen.digest,
      stages: frozen.environment.stages.map((stage) => `${stage.name} (${stage.trust})`),
      proofs,
    };
  });
}

interface Attack {
  readonly name: string;
  /** Shell, run as the candidate's first stage would be. */
  readonly script: string;
  readonly judge: (output: string) => Pick<Proof, "held" | "detail">;
}

/** What a process that was left behind would be called. */
const strayName = `trialist-stray-${process.pid}`;
const secretVariable = "TRIALIST_CHECK_CANARY";

function attacksOn(ready: ReadyEnvironment): Attack[] {
  const { prepared, data } = ready;
  const canaries = Object.values(data.canaries);
  const hidden = [data.inloop, data.heldout].filter((path): path is string => path !== null);
  const look = hidden.map((path) => `cat '${path}'/* '${path}'/.trialist-canary 2>/dev/null`).join("; ");
  const absent =
    (what: string) =>
    (output: string): Pick<Proof, "held" | "detail"> => {
      const said = output.trim();
      return { held: said === "", detail: said === "" ? `${what}: nothing was there` : `${what}: ${said.slice(0, 200)}` };
    };
  // A prefix or a mount may lie in a home folder: it is bound, and so are the folders on the way, empty but for it.
  const bound = [...prepared.runtime.mounts, ...prepared.mounts].map((mount) => mount.target);
  const literal = (path: string): string => `'${path.replaceAll(/[\\*?[]/g, "\\$&").replaceAll("'", "'\\''")}'`;
  const pruned = bound.map((path) => `-path ${literal(path)} -prune -o`).join(" ");
  return [
    {
      name: "labels",
      script: `${look === "" ? ":" : look}; find / -xdev -name .trialist-canary -exec cat {} + 2>/dev/null; cat /trialist/labels/* 2>/dev/null; true`,
      judge: (output) => ({
        held: output.trim() === "" && !canaries.includes(digestOf(output.trim())),
        detail:
          hidden.length === 0
            ? "this environment hides no data"
            : output.trim() === ""
              ? `${hidden.length} hidden folders and their canaries: nothing was there`
              : `something could be read: ${output.slice(0, 100)}`,
      }),
    },
    {
      name: "network",
      script:
        "python3 -c \"import socket; s=socket.create_connection(('1.1.1.1',53),2); print('connected')\" 2>/dev/null; tail -n +3 /proc/net/dev 2>/dev/null | grep -v ' lo:' ; true",
      judge: absent("another network interface or a connection"),
    },
    {
      name: "evaluator",
      script: `for f in '${prepared.packFolder}' /trialist/pack; do [ -e "$f" ] && echo "sees $f"; done; touch /usr/bin/trialist-was-here 2>/dev/null && echo wrote /usr; true`,
      judge: absent("the pack, or a writable system folder"),
    },
    {
      name: "home",
      script: `find /root /home -mindepth 1 ${pruned} -print 2>/dev/null | head -n 50; cat /etc/shadow 2>/dev/null; true`,
      judge: (output) => {
        const others = output.split("\n").filter((line) => line !== "" && !bound.some((path) => path.startsWith(`${line}/`)));
        return absent("home folders and /etc/shadow")(others.join("\n"));
      },
    },
    {
      name: "environment",
      script: `printenv ${secretVariable}; tr '\\0' '\\n' < /proc/1/environ 2>/dev/null | grep ${secretVariable}; true`,
      judge: absent("the host's environment variables"),
    },
    {
      name: "processes",
      script: `setsid sh -c 'exec -a ${strayName} sleep 300' >/dev/null 2>&1 & setsid sleep 301.${process.pid} >/dev/null 2>&1 & ls /proc | grep -E '^[0-9]+$' | wc -l`,
      judge: (output) => ({ held: Number(output.trim()) < 40, detail: `a candidate sees ${output.trim()} processes, its own` }),
    },
  ];
}

async function attempt(
  executor: Executor,
  host: Host,
  ready: ReadyEnvironment,
  candidate: Awaited<ReturnType<typeof readCandidate>>,
  root: string,
  id: string,
  script: string,
): Promise<string> {
  const first = ready.prepared.environment.stages.find((stage) => stage.trust === "candidate");
  if (first === undefined) throw new RangeError("an environment has a candidate's stage");
  const stage: Stage = {
    ...first,
    name: "attack",
    run: script,
    outputs: [],
    repeats: 1,
    limits: { ...first.limits, wallMs: 30_000, cpuMs: 30_000, processes: Math.max(32, first.limits.processes), outputBytes: 2 ** 20 },
  };
  const run = await stageExecution({
    id,
    stage,
    repeat: 1,
    seed: 0,
    sandbox: "bubblewrap",
    prepared: ready.prepared,
    folders: new AttemptFolders(root, giveToSandbox),
    manifest: candidate.manifest,
    content: (digest) => candidate.contents.get(digest) ?? new Uint8Array(),
    hostEnvironment: { ...host.variables, [secretVariable]: "visible" },
    gpus: null,
    collectMaxBytes: 0,
  });
  await executor.start(run);
  const found = await executor.wait(id);
  if (found.state === "gone") throw new RangeError(`the attempt could not be run: ${found.reason}`);
  const { stdout } = await executor.output(id);
  return Buffer.concat([stdout.head, stdout.tail]).toString("utf8");
}

/** Looks for the processes that the last attack tried to leave behind. */
async function nothingLeft(): Promise<Proof> {
  const left: string[] = [];
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (command.includes(`301.${process.pid}`) || command.startsWith(strayName)) left.push(pid);
  }
  return {
    name: "left behind",
    held: left.length === 0,
    detail: left.length === 0 ? "no process outlived its stage" : `processes ${left.join(", ")} outlived their stage`,
  };
}
