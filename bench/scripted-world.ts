import type { PreparedEnvironment } from "../src/core/ports/prepared-environment.js";
import type { Researcher } from "../src/core/ports/researcher.js";
import { nothing } from "../src/core/protocol/budget.js";
import { manifestOf } from "../src/core/protocol/candidate.js";
import { canonicalJson } from "../src/core/protocol/canonical.js";
import type { Environment } from "../src/core/protocol/environment.js";
import type { ManifestReference } from "../src/core/protocol/ids.js";
import type { StageOutcome } from "../src/core/protocol/outcome.js";
import type { RunConfiguration } from "../src/core/protocol/run.js";
import type { Run } from "../src/research/runner/run.js";
import { testConfiguration, testEnvironment } from "../tests/support/configuration.js";

/**
 * A world that answers at once: a researcher that writes a solution, a stage that prints and sometimes fails, an
 * evaluator that scores records. Sizes are those of a small tabular task.
 */

const path = "solution.py";
const solutionLines = 60;
const printedLines = 20;
const scoredRecords = 200;

export function worldEnvironment(): Environment {
  return testEnvironment({
    name: "scripted",
    description: "Predict the class of each record from its features. ".repeat(12),
    surface: { editable: ["*.py"], maxBytes: 100_000 },
    promotion: { rule: "any", confirmations: 3, level: 0.05, minimumGain: null },
  });
}

export function worldConfiguration(changes: Partial<RunConfiguration> = {}): RunConfiguration {
  return testConfiguration({
    run: "bench",
    environment: worldEnvironment(),
    budget: { trials: 1_000_000, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    sandbox: "none",
    ...changes,
  });
}

export function solutionText(seed: number): string {
  const lines = Array.from(
    { length: solutionLines },
    (_, line) => `feature_${line} = transform(frame["column_${line}"], scale=${(seed * 31 + line * 7) % 1000})`,
  );
  return `# candidate ${seed}\n${lines.join("\n")}\n`;
}

/** Stores the baseline's blobs and names its manifest. */
export function storeBaseline(run: Run): ManifestReference {
  const stored = run.putBlob(new TextEncoder().encode(solutionText(0)));
  const manifest = manifestOf([{ path, digest: stored.blob, bytes: stored.bytes, executable: false }]);
  return { ...run.putBlob(new TextEncoder().encode(canonicalJson(manifest))), manifest: true };
}

/** Between 0 and 1, by number; the same in every run. */
function chance(number: number, salt: number): number {
  let bits = (number * 2_654_435_761 + salt * 40_503) >>> 0;
  bits = Math.imul(bits ^ (bits >>> 15), 2_246_822_519) >>> 0;
  bits = Math.imul(bits ^ (bits >>> 13), 3_266_489_917) >>> 0;
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}

export function fails(number: number): boolean {
  return chance(number, 1) < 0.2;
}

export function answerFor(number: number): Uint8Array {
  const plan = {
    hypothesis: `Attempt ${number}: rescale the skewed columns and let the booster see ${number % 17} interactions of the strongest two.`,
    expected_change: 0.001,
  };
  return new TextEncoder().encode(JSON.stringify({ plan, files: { [path]: solutionText(number) } }));
}

export function printedBy(number: number): Uint8Array {
  const lines = Array.from(
    { length: printedLines },
    (_, line) => `round ${line} of trial ${number}: loss ${chance(number, line).toFixed(6)}`,
  );
  return new TextEncoder().encode(`${lines.join("\n")}\n`);
}

/** What the evaluator writes: records and their mean. */
export function measurementFile(number: number): string {
  const ids = Array.from({ length: scoredRecords }, (_, id) => id);
  const values = ids.map((id) => Number(chance(number, id + 100).toFixed(6)));
  const score = values.reduce((sum, each) => sum + each, 0) / values.length;
  return JSON.stringify({ metrics: { score }, records: { metric: "score", ids, values } });
}

export function outcomeOf(exitCode: number, printed: Uint8Array): StageOutcome {
  return {
    exitCode,
    signal: null,
    limit: null,
    wallMs: 1012.25,
    cpuMs: 980.5,
    peakMemoryBytes: 123_456_789,
    stdout: { bytes: printed.byteLength, omittedBytes: 0 },
    stderr: { bytes: 0, omittedBytes: 0 },
    outputs: [],
    guarantees: {
      sandbox: "none",
      networkOff: false,
      filesystemIsolated: false,
      unprivileged: false,
      memory: "polled",
      processes: "polled",
    },
  };
}

/** Answers at once, from this process. */
export function scriptedResearcher(): Researcher {
  let calls = 0;
  return {
    name: "scripted",
    answer: async () => {
      calls += 1;
      return { raw: answerFor(calls), usage: nothing, model: null };
    },
  };
}

/** A pack without files, data and runtime. */
export function preparedEnvironment(folder: string, environment: Environment): PreparedEnvironment {
  return {
    environment,
    digest: "e".repeat(64),
    packFolder: folder,
    contextFolder: null,
    data: { public: null, inloop: null },
    runtime: { path: [], mounts: [], environment: {} },
    mounts: [],
    changed: async () => null,
    scratchFolder: folder,
  };
}
