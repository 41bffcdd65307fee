import { mkdirSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NewEvent } from "../src/core/ports/ledger.js";

/** Events of the size and shape that trials leave: ten per trial, the largest a stage's outcome. */
export function eventLike(index: number): NewEvent {
  const trial = `t${Math.floor(index / 10)}`;
  const attempt = { trial, attempt: `m${index}.1` };
  const blob = { blob: index.toString(16).padStart(64, "0"), bytes: 1234 + (index % 1000) };
  switch (index % 10) {
    case 0:
      return {
        type: "call.requested",
        version: 1,
        data: { call: `c${index}`, role: "improver", view: index, prompt: blob, reserved: { tokens: 20_000, money: 0.05 } },
      };
    case 1:
      return {
        type: "call.answered",
        version: 1,
        data: { call: `c${index}`, reply: blob, usage: { input: 8123, output: 2210, seconds: 14.25 } },
      };
    case 2:
      return {
        type: "trial.admitted",
        version: 1,
        data: { trial, plan: `p${index}`, parents: ["t0"], candidate: { ...blob, manifest: true }, bestAtView: 0.4123 },
      };
    case 3:
    case 7:
      return {
        type: "attempt.started",
        version: 1,
        data: { ...attempt, stage: "train", seed: index * 7919, command: "python solution.py", started: 1.7e12 + index },
      };
    case 4:
    case 5:
    case 8:
      return {
        type: "stage.ended",
        version: 1,
        data: { ...attempt, stage: "train", outcome: outcomeLike(index), stdout: blob, stderr: blob },
      };
    case 6:
      return {
        type: "trial.measured",
        version: 1,
        data: { ...attempt, purpose: "in-loop", values: { logloss: 0.4 + index / 1e7, accuracy: 0.81 }, records: blob },
      };
    default:
      return {
        type: "trial.ended",
        version: 1,
        data: { trial, status: "discard", verdict: { against: "leader", difference: -0.0012, interval: [-0.004, 0.0016], level: 0.05 } },
      };
  }
}

function outcomeLike(index: number): unknown {
  const guarantees = {
    sandbox: "bubblewrap",
    networkOff: true,
    filesystemIsolated: true,
    unprivileged: true,
    memory: "cgroup-v2",
    processes: "cgroup",
  };
  const output = { bytes: 4096 + index, omittedBytes: 0 };
  const outputs = [{ path: "predictions.csv", state: "present", bytes: 88_000 + index }];
  return {
    exitCode: 0,
    signal: null,
    limit: null,
    wallMs: 5123.25 + index,
    cpuMs: 9001.5,
    peakMemoryBytes: 412_334_080,
    stdout: output,
    stderr: output,
    outputs,
    guarantees,
  };
}

const tmpfsType = 0x01021994;

/** A folder on a disk: where the temporary folder is memory, durable writes cost nothing there and no ratio means a thing. */
export function diskFolder(): string {
  if (statfsSync(tmpdir()).type !== tmpfsType) return tmpdir();
  const folder = join(process.cwd(), "node_modules", ".cache", "bench");
  mkdirSync(folder, { recursive: true });
  return folder;
}
