import { closeSync, constants, existsSync, fstatSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { isPlainPath } from "../../core/harness/admission.js";
import type { CapturedStreams, Executor } from "../../core/ports/executor.js";
import type { PreparedEnvironment } from "../../core/ports/prepared-environment.js";
import { canonicalJson } from "../../core/protocol/canonical.js";
import { type Environment, isSelfReported, type Metric, type Stage } from "../../core/protocol/environment.js";
import type { EventData } from "../../core/protocol/events.js";
import type { BlobReference } from "../../core/protocol/ids.js";
import { type MetricValues, missedGate, type ReadMeasurement, type RecordSet, readMeasurement } from "../../core/protocol/measurement.js";
import type { StageOutcome } from "../../core/protocol/outcome.js";
import { type CandidateFault, statusOfFault } from "../../core/protocol/status.js";
import type { AttemptFolders } from "./attempt-folders.js";
import { numberInJson } from "./json-metric.js";

export interface EndedStage {
  readonly stage: Stage;
  readonly repeat: number;
  readonly executionId: string;
  readonly outcome: StageOutcome;
  readonly stdout: BlobReference;
  readonly stderr: BlobReference;
  /** What its measurement file says, once it was read. */
  measurement?: ReadMeasurement | null;
}

export interface ConcludeHost {
  readonly prepared: PreparedEnvironment;
  readonly executor: Executor;
  readonly blob: (digest: string) => Uint8Array;
  readonly putBlob: (bytes: Uint8Array) => BlobReference;
}

type Result = EventData<"attempt.ended">["result"];

/** Largest measurement file that is read, in bytes: two million records fit. */
const maxMeasurementBytes = 128 * 1024 * 1024;

/** Largest JSON file of a candidate that a metric is taken from, in bytes. */
const maxJsonBytes = 8 * 1024 * 1024;

/** Metrics that the last measuring evaluator must give. */
function wantedMetrics(environment: Environment, stage: Stage): string[] {
  return stage.purpose === "in-loop" || stage.purpose === "held-out"
    ? environment.metrics.filter((metric) => metric.from.kind === "measurement").map((metric) => metric.name)
    : [];
}

/** Reads what an evaluator stage wrote, once; a stage without a purpose writes nothing. */
export function readEvaluatorFile(host: ConcludeHost, folders: AttemptFolders, stage: Stage, ended: EndedStage): ReadMeasurement | null {
  if (stage.purpose === null || ended.outcome.exitCode !== 0 || ended.outcome.limit !== null) return null;
  if (ended.measurement === undefined) {
    const text = readPlainFile(join(folders.root, `${stage.name}-1`, "measurement", "measurement.json"));
    ended.measurement = readMeasurement(text, wantedMetrics(host.prepared.environment, stage));
  }
  return ended.measurement;
}

/** What the last online stage chose, for the stages after it; null when none did. A path that leaves the artifacts chooses nothing. */
export function selectedOutput(ended: readonly EndedStage[]): { readonly selected: string; readonly values: MetricValues } | null {
  const read = ended.filter((each) => each.stage.purpose === "online").at(-1)?.measurement;
  if (read?.kind !== "measured" || read.selected === null || !isPlainPath(read.selected)) return null;
  return { selected: read.selected, values: read.values };
}

/** The text of a regular file, never through a link; null when there is none, or a larger one. */
function readPlainFile(path: string, maxBytes = maxMeasurementBytes): string | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    const facts = fstatSync(file);
    return facts.isFile() && facts.size <= maxBytes ? readFileSync(file, "utf8") : null;
  } finally {
    closeSync(file);
  }
}

/** All stages ended well: gathers the metrics from where the environment says they come, then asks the gates. */
export async function conclude(
  host: ConcludeHost,
  folders: AttemptFolders,
  ended: readonly EndedStage[],
  purpose: "in-loop" | "held-out",
): Promise<Result> {
  const { environment } = host.prepared;
  const oversized = oversizedArtifact(environment, ended);
  if (oversized !== null) return faulty("oversized", oversized.stage, oversized.reason);
  const values: MetricValues = {};
  let records: RecordSet | null = null;
  const measuring = ended.filter((each) => each.stage.purpose === purpose).at(-1);
  if (measuring !== undefined) {
    const read = readEvaluatorFile(host, folders, measuring.stage, measuring);
    if (read?.kind === "measured") {
      Object.assign(values, read.values);
      records = read.records;
    }
  }
  const wallSeconds: Record<string, number[]> = {};
  for (const metric of environment.metrics) {
    const problem = await takeOutside(host, folders, metric, ended, values, wallSeconds);
    if (problem !== null)
      return faulty("metric_missing", isSelfReported(metric) && "stage" in metric.from ? metric.from.stage : null, problem);
  }
  const missed = missedGate(environment.gates, values);
  if (missed !== null) return faulty("gate_missed", measuring?.stage.name ?? null, missed.reason, values);
  return measuredResult(host, folders, ended, values, records, wallSeconds);
}

/** The end of an attempt whose stages ended well and whose candidate has a fault all the same. */
export function faulty(fault: CandidateFault, stage: string | null, reason: string, values: MetricValues = {}): Result {
  return { kind: "ended", status: statusOfFault(fault), stage, reason: reason.slice(0, 4000), values };
}

function measuredResult(
  host: ConcludeHost,
  folders: AttemptFolders,
  ended: readonly EndedStage[],
  values: MetricValues,
  records: RecordSet | null,
  wallSeconds: Record<string, number[]>,
): Result {
  const first = ended[0];
  if (first === undefined) return { kind: "interrupted", reason: "no stage ran" };
  const selfReported = host.prepared.environment.metrics.filter(isSelfReported).map((metric) => metric.name);
  return {
    kind: "measured",
    measured: { values, selfReported, guarantees: first.outcome.guarantees, online: selectedOutput(ended), wallSeconds },
    records: records === null ? null : host.putBlob(new TextEncoder().encode(canonicalJson(records))),
    outputs: host.prepared.environment.keepOutputs === "none" ? [] : keptOutputs(host, folders.artifacts),
  };
}

/** The collected outputs, stored. They are the collector's own copies: regular files in folders that no stage wrote to. */
function keptOutputs(host: ConcludeHost, artifacts: string): { path: string; content: BlobReference }[] {
  if (!existsSync(artifacts)) return [];
  const files = readdirSync(artifacts, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => ({ path: relative(artifacts, path), content: host.putBlob(readFileSync(path)) }));
}

function oversizedArtifact(environment: Environment, ended: readonly EndedStage[]): { stage: string; reason: string } | null {
  for (const gate of environment.gates) {
    if (!("artifact" in gate)) continue;
    for (const each of ended) {
      const output = each.outcome.outputs.find((one) => one.path === gate.artifact && one.bytes > gate.atMostBytes);
      if (output !== undefined)
        return { stage: each.stage.name, reason: `${gate.artifact} holds ${output.bytes} bytes, at most ${gate.atMostBytes} are allowed` };
    }
  }
  return null;
}

/** Fills in a metric that does not come from the evaluator. Returns why it is missing, or null. */
async function takeOutside(
  host: ConcludeHost,
  folders: AttemptFolders,
  metric: Metric,
  ended: readonly EndedStage[],
  values: MetricValues,
  wallSeconds: Record<string, number[]>,
): Promise<string | null> {
  const { from } = metric;
  if (from.kind === "measurement") return null;
  const runs = ended.filter((each) => each.stage.name === from.stage);
  if (from.kind === "wall") {
    const seconds = runs.map((each) => each.outcome.wallMs / 1000);
    wallSeconds[metric.name] = seconds;
    values[metric.name] = seconds.reduce((sum, each) => sum + each, 0) / Math.max(1, seconds.length);
    return null;
  }
  if (from.kind === "json") return takeJson(metric.name, from, folders, runs, values);
  const printed = [];
  for (const run of runs)
    printed.push(lastMatch(await host.executor.output(run.executionId), run.outcome.stdout.omittedBytes > 0, from.pattern));
  const numbers = printed.filter((value): value is number => value !== null);
  if (numbers.length < runs.length || numbers.length === 0)
    return `the output of ${from.stage} holds no finite number where ${shortened(from.pattern)} looks for ${metric.name}`;
  values[metric.name] = numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
  return null;
}

/** Patterns that `init` writes are longer than a reason should be; the whole one stands in the environment. */
function shortened(pattern: string): string {
  const most = 60;
  return pattern.length <= most ? pattern : `${pattern.slice(0, most)}…`;
}

/** The mean, over the repeats, of a number in a file that the candidate's stage declared; the collector's copies are read. */
function takeJson(
  name: string,
  from: Extract<Metric["from"], { kind: "json" }>,
  folders: AttemptFolders,
  runs: readonly EndedStage[],
  values: MetricValues,
): string | null {
  const numbers: number[] = [];
  for (const { stage, repeat } of runs) {
    const text = readPlainFile(join(folders.artifactsOf(repeat, stage.repeats), from.file), maxJsonBytes);
    const found = text === null ? `it is no regular file of at most ${maxJsonBytes} bytes` : numberInJson(text, from);
    if (typeof found === "string") return `${from.file} of ${from.stage} gives no ${name}: ${found}`;
    numbers.push(found);
  }
  if (numbers.length === 0) return `${from.stage}, which writes ${from.file}, did not run`;
  values[name] = numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
  return null;
}

/** Longest line of a program's output in which a number is looked for, in characters: a pattern's cost stays bounded. */
const matchedLine = 2000;

/** The first group of the last line that matches, in what was kept of standard output, as a finite number. */
function lastMatch(streams: CapturedStreams, cut: boolean, pattern: string): number | null {
  const text = Buffer.concat([streams.stdout.head, Buffer.from(cut ? "\n" : ""), streams.stdout.tail]).toString("utf8");
  for (const line of text.split("\n").reverse()) {
    const last = [...line.slice(-matchedLine).matchAll(new RegExp(pattern, "gm"))].at(-1);
    if (last === undefined) continue;
    const found = last[1]?.trim() ?? "";
    return found !== "" && Number.isFinite(Number(found)) ? Number(found) : null;
  }
  return null;
}
