import { z } from "zod";
import type { Environment, Gate, Metric } from "./environment.js";
import { guarantees } from "./outcome.js";
import type { EvaluatorVerdict } from "./status.js";

/** Metric values by name. Finite; an integer is a number, and 0 and 1 are values like any other. */
export const metricValues = z.record(z.string(), z.number());
export type MetricValues = z.infer<typeof metricValues>;

/**
 * Per-record losses or scores: `values[i]` belongs to `ids[i]`, and the mean of `values` is the metric named. Ids are
 * unique; comparisons pair two measurements by id.
 */
// The lists can be long, and zod takes a step per item that costs a hundred times what this check does.
export const recordSet = z.strictObject({
  metric: z.string(),
  ids: z.custom<(string | number)[]>(isListOf((id) => Number.isFinite(id) || (typeof id === "string" && id.length <= 200))),
  values: z.custom<number[]>(isListOf(Number.isFinite)),
});
export type RecordSet = z.infer<typeof recordSet>;

const mostRecords = 2_000_000;

function isListOf(isItem: (item: unknown) => boolean): (value: unknown) => boolean {
  return (value) => Array.isArray(value) && value.length <= mostRecords && value.every(isItem);
}

/** The file that an evaluator writes. Exactly one of `metrics`, `invalid`, `disqualified`. */
export const measurementFile = z.union([
  z.strictObject({
    metrics: z.record(z.string(), z.unknown()),
    records: z.unknown().optional(),
    selected: z.string().max(1000).optional(),
  }),
  z.strictObject({ invalid: z.string().max(2000) }),
  z.strictObject({ disqualified: z.string().max(2000) }),
]);

/** What one attempt measured. */
export const measured = z.strictObject({
  values: metricValues,
  /** Names of metrics that the candidate printed itself. */
  selfReported: z.array(z.string()),
  guarantees,
  /** What an online stage chose, and by which values: they decide nothing and appear in no ranking. */
  online: z.strictObject({ selected: z.string(), values: metricValues }).nullable().optional(),
  /** Seconds of each repeat of a wall-clock metric's stage, by metric name. */
  wallSeconds: z.record(z.string(), z.array(z.number())),
});

export type ReadMeasurement =
  | { readonly kind: "measured"; readonly values: MetricValues; readonly records: RecordSet | null; readonly selected: string | null }
  | Exclude<EvaluatorVerdict, { kind: "measured" }>;

/** Checks an evaluator's file. `text` is null when no file was written. `wanted`: metrics that this stage must give. */
export function readMeasurement(text: string | null, wanted: readonly string[]): ReadMeasurement {
  if (text === null) return { kind: "broken", reason: "the evaluator ended well without writing its measurement file" };
  const file = measurementFile.safeParse(parseJson(text));
  if (!file.success)
    return { kind: "broken", reason: `the measurement file has another shape than {"metrics": …}, {"invalid": …} or {"disqualified": …}` };
  if ("invalid" in file.data) return { kind: "invalid", reason: file.data.invalid };
  if ("disqualified" in file.data) return { kind: "disqualified", reason: file.data.disqualified };
  const selected = file.data.selected ?? null;
  const values = readMetrics(file.data.metrics, wanted);
  if (typeof values === "string") return { kind: "invalid", reason: values };
  if (file.data.records === undefined || file.data.records === null) return { kind: "measured", values, records: null, selected };
  const problem = recordProblem(file.data.records);
  if (problem !== null) return { kind: "invalid", reason: problem };
  return { kind: "measured", values, records: file.data.records as RecordSet, selected };
}

function parseJson(text: string): unknown {
  // Python's json.dumps writes NaN and Infinity, which are not JSON; they must end as "not finite", not as a broken
  // evaluator. Only a text that is no JSON is looked at again, so that a reason that quotes ", NaN," stays as it is.
  return tryParse(text) ?? tryParse(text.replace(/(?<=[:[,]\s*)(-?Infinity|NaN)(?=\s*[,\]}])/g, '"$1"'));
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The wanted metrics, and of an online stage, which wants none, every number that it gives; or what is wrong with them. */
function readMetrics(metrics: Record<string, unknown>, wanted: readonly string[]): MetricValues | string {
  const values: MetricValues = {};
  for (const name of wanted.length === 0 ? Object.keys(metrics).slice(0, 100) : wanted) {
    const value = metrics[name];
    if (value === undefined) return `the metric ${name} is missing from the measurement`;
    if (typeof value !== "number" || !Number.isFinite(value)) return `the metric ${name} is ${JSON.stringify(value)}, not a finite number`;
    values[name] = value;
  }
  return values;
}

function recordProblem(records: unknown): string | null {
  const parsed = recordSet.safeParse(records);
  if (!parsed.success) return "the per-record results are not lists of ids and finite numbers";
  const { ids, values } = parsed.data;
  if (ids.length !== values.length) return `the per-record results hold ${ids.length} ids and ${values.length} values`;
  if (new Set(ids.map(String)).size !== ids.length) return "the per-record results name an id twice";
  return null;
}

/** The first gate that is missed, in words, with whether it is a rule of validity; null when all hold. */
export function missedGate(gates: readonly Gate[], values: MetricValues): { readonly reason: string; readonly validity: boolean } | null {
  for (const gate of gates) {
    if (!("metric" in gate)) continue;
    const value = values[gate.metric];
    if (value === undefined) return { reason: `the gate's metric ${gate.metric} was not measured`, validity: gate.validity };
    if (gate.atLeast !== null && value < gate.atLeast)
      return { reason: `${gate.metric} is ${value}, at least ${gate.atLeast} is required`, validity: gate.validity };
    if (gate.atMost !== null && value > gate.atMost)
      return { reason: `${gate.metric} is ${value}, at most ${gate.atMost} is allowed`, validity: gate.validity };
  }
  return null;
}

/** Gain of `a` over `b` in the metric's own unit: positive is better whatever the direction. */
export function gain(metric: Metric, a: number, b: number): number {
  return metric.direction === "maximize" ? a - b : b - a;
}

/** Compares by the ordered metrics: the first that differs decides. Positive: `a` is better. 0: equal in all. */
export function compareValues(environment: Pick<Environment, "metrics">, a: MetricValues, b: MetricValues): number {
  for (const metric of environment.metrics) {
    const left = a[metric.name];
    const right = b[metric.name];
    if (left === undefined || right === undefined) continue;
    const difference = gain(metric, left, right);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The first metric: the one that decides. */
export function primaryMetric(environment: Pick<Environment, "metrics">): Metric {
  const first = environment.metrics[0];
  if (first === undefined) throw new RangeError("an environment has at least one metric");
  return first;
}
