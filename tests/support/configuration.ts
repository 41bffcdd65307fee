import type { Environment } from "../../src/core/protocol/environment.js";
import type { RunConfiguration } from "../../src/core/protocol/run.js";

const limits = { wallMs: 10_000, cpuMs: 10_000, memoryBytes: 2 ** 30, cpus: 1, processes: 64, diskBytes: 2 ** 28, outputBytes: 2 ** 24 };

/** A small environment: one candidate stage, one evaluator, one metric. */
export function testEnvironment(changes: Partial<Environment> = {}): Environment {
  const stage = { outputs: [] as string[], limits, exclusive: false, repeats: 1, pass: [], preflight: false };
  return {
    schema: "trialist/environment@1",
    name: "tiny",
    description: "a tiny environment",
    knowledge: [],
    surface: { editable: ["*.txt"], maxBytes: 100_000 },
    runtime: null,
    data: null,
    mounts: [],
    stages: [
      { ...stage, name: "train", trust: "candidate", run: "true", purpose: null },
      { ...stage, name: "measure", trust: "evaluator", run: "true", purpose: "in-loop" },
    ],
    metrics: [{ name: "score", direction: "maximize", from: { kind: "measurement" } }],
    gates: [],
    noise: { calibrate: 3, remeasureEvery: 0 },
    promotion: { rule: "confirmed", confirmations: 3, level: 0.05, minimumGain: null },
    references: [],
    onExhausted: { attempt: "fail", call: "suspend" },
    seed: 7,
    keepOutputs: "none",
    playbook: {},
    baseline: "baseline",
    ...changes,
  };
}

export function testConfiguration(changes: Partial<RunConfiguration> = {}): RunConfiguration {
  const environment = changes.environment ?? testEnvironment();
  return {
    run: "test",
    environment,
    environmentDigest: "e".repeat(64),
    organization: { name: "tree", configuration: {} },
    researchers: { "*": "scripted" },
    budget: { trials: 10, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    promotion: environment.promotion,
    stop: { target: null, patience: null, saturation: null },
    seed: 1,
    parallel: 1,
    sandbox: "bubblewrap",
    limits: { callRounds: 3, refusedCalls: 5, attempts: 3, sessionTurns: 20, callWallMs: 60_000 },
    alternates: [],
    researcherSettings: {},
    callReservations: { "*": { costUsd: 0, tokens: 0, computeMs: 0 } },
    host: { platform: "linux", cpus: 2, cpuModel: "test", memoryBytes: 1, versions: {} },
    gate: null,
    ...changes,
  };
}
