import type { Environment } from "../../core/protocol/environment.js";
import { markdown, markdownCode } from "./hostile-text.js";
import { grid } from "./markdown-grid.js";
import type { Subject } from "./markdown-subject.js";
import { bytes, duration } from "./numbers.js";

export function environmentSection({ state }: Subject): string {
  if (state.configuration === null) return "";
  const { environment, environmentDigest } = state.configuration;
  const metrics = environment.metrics
    .map((metric) => `${markdownCode(metric.name)} (${metric.direction}; ${sourceOf(metric)})`)
    .join(", then ");
  const gates = environment.gates.map((gate) =>
    "metric" in gate ? gateText(gate) : `${markdownCode(gate.artifact)} at most ${bytes(gate.atMostBytes)}`,
  );
  return [
    "## Environment",
    `${markdownCode(environment.name)}, frozen as ${markdownCode(environmentDigest)}.`,
    [
      `- Metric: ${metrics}`,
      `- Gates: ${gates.length === 0 ? "none" : gates.join("; ")}`,
      `- Editable: ${environment.surface.editable.map((glob) => markdownCode(glob, 200)).join(", ")}, at most ${bytes(environment.surface.maxBytes)}`,
      `- Seed of splits, training and decoding: ${environment.seed}`,
    ].join("\n"),
    grid(["stage", "trust", "purpose", "repeats", "wall limit", "CPU limit", "memory limit", "alone"], environment.stages.map(stageRow)),
  ].join("\n\n");
}

function sourceOf(metric: Environment["metrics"][number]): string {
  if (metric.from.kind === "measurement") return "measured by the evaluator";
  if (metric.from.kind === "json")
    return `**self-reported**: \`${metric.from.key}\` in ${metric.from.file}, which the candidate itself wrote`;
  if (metric.from.kind === "wall") return `seconds of stage ${metric.from.stage}, clocked outside the process`;
  return `**self-reported**: printed by stage ${metric.from.stage}`;
}

function gateText(gate: { metric: string; atLeast: number | null; atMost: number | null; validity: boolean }): string {
  const bounds = [gate.atLeast === null ? "" : `at least ${gate.atLeast}`, gate.atMost === null ? "" : `at most ${gate.atMost}`]
    .filter((part) => part !== "")
    .join(" and ");
  return `${markdownCode(gate.metric, 60)} ${bounds}${gate.validity ? " (a rule of validity)" : ""}`;
}

function stageRow(stage: Environment["stages"][number]): string[] {
  const { limits } = stage;
  return [
    stage.name,
    stage.trust,
    stage.purpose ?? "",
    String(stage.repeats),
    duration(limits.wallMs),
    duration(limits.cpuMs),
    bytes(limits.memoryBytes),
    stage.exclusive ? "yes" : "",
  ].map((cell) => markdown(cell));
}
