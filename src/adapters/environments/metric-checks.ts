import type { Checks } from "./checks.js";
import { normalizeGlob, normalizePath, pathMatcher } from "./globs.js";
import { didYouMean } from "./suggestions.js";
import type { DocumentPath } from "./yaml-source.js";

export function checkMetrics(checks: Checks): void {
  const { metrics, stages } = checks.form;
  const names = metrics.map((metric) => metric.name);
  const candidates = stages.filter((stage) => stage.trust === "candidate").map((stage) => stage.name);
  const measured = stages.some((stage) => stage.trust === "evaluator" && (stage.purpose ?? "in-loop") === "in-loop");
  for (const [index, metric] of metrics.entries()) {
    const where = ["metrics", index];
    if (names.indexOf(metric.name) !== index)
      checks.at(where, {
        what: `two metrics are called \`${metric.name}\``,
        expected: "a name of its own for every metric",
        found: metric.name,
        todo: "rename or remove one of the two",
      });
    const { from } = metric;
    if (from === undefined || from === "measurement") {
      if (!measured)
        checks.at(where, {
          what: `nothing measures \`${metric.name}\``,
          expected:
            "a stage with trust: evaluator and purpose: in-loop, or `from: { wall: STAGE }`, `from: { stdout: REGEX }` or `from: { json: FILE }`",
          found: "no such stage",
          todo: "add the stage, or say where the value comes from",
        });
      continue;
    }
    const stage = "wall" in from ? from.wall : from.stage;
    const key = "wall" in from ? "wall" : "stage";
    if (stage !== undefined && !candidates.includes(stage))
      checks.at([...where, "from", key], {
        what: `\`${metric.name}\` comes from \`${stage}\`, which is no candidate stage`,
        expected: `one of ${candidates.join(", ")}`,
        found: stage,
        todo: didYouMean(stage, candidates, "name a stage with trust: candidate"),
      });
    if ("json" in from) checkJsonOutput(checks, metric.name, from, [...where, "from", "json"]);
  }
}

/** A JSON file that a metric comes from is an output of its stage: nothing else of a workspace is kept. */
function checkJsonOutput(
  checks: Checks,
  metric: string,
  from: { readonly json: string; readonly stage?: string | undefined },
  where: DocumentPath,
): void {
  const writers = checks.form.stages.filter(
    ({ name, trust }) => trust === "candidate" && (from.stage === undefined || from.stage === name),
  );
  const outputs = writers.flatMap((stage) => stage.outputs ?? []);
  if (writers.length === 0 || pathMatcher(outputs)(normalizePath(from.json))) return;
  checks.at(where, {
    what: `\`${metric}\` comes from ${from.json}, which no candidate stage${from.stage === undefined ? "" : ` called ${from.stage}`} declares`,
    expected: "a file that the stage names under `outputs`",
    found: outputs.join(", ") || "no outputs",
    todo: `add \`outputs: [${from.json}]\` to the stage, which writes it below $TRIALIST_OUTPUT`,
  });
}

export function checkGates(checks: Checks): void {
  const { gates = [], metrics, stages } = checks.form;
  const names = metrics.map((metric) => metric.name);
  const outputs = stages.flatMap((stage) => stage.outputs ?? []);
  for (const [index, gate] of gates.entries()) {
    const where = ["gates", index];
    if (gate.kind === "metric" && !names.includes(gate.metric))
      checks.at([...where, "metric"], {
        what: `the gate's metric \`${gate.metric}\` does not exist`,
        expected: `one of ${names.join(", ")}`,
        found: gate.metric,
        todo: didYouMean(gate.metric, names, "add it under `metrics`"),
      });
    if (gate.kind === "metric" && gate.atLeast !== null && gate.atMost !== null && gate.atLeast > gate.atMost)
      checks.at(where, {
        what: "no value can pass this gate",
        expected: "at_least not above at_most",
        found: `at_least ${gate.atLeast}, at_most ${gate.atMost}`,
        todo: "correct one of the two",
      });
    if (
      gate.kind === "artifact" &&
      !outputs.some((output) => normalizeGlob(output) === normalizeGlob(gate.artifact) || pathMatcher([output])(gate.artifact))
    )
      checks.at([...where, "artifact"], {
        what: `no stage declares the output \`${gate.artifact}\``,
        expected: outputs.length === 0 ? "a declared output" : `one of ${outputs.join(", ")}`,
        found: gate.artifact,
        todo: didYouMean(gate.artifact, outputs, "add it to the stage's `outputs`"),
      });
  }
}

export function checkPromotion(checks: Checks): void {
  const { promotion } = checks.form;
  const rule = promotion?.rule ?? "confirmed";
  if (promotion?.minimum_gain === undefined || rule === "threshold") return;
  checks.at(["promotion", "minimum_gain"], {
    what: "`minimum_gain` has no meaning here",
    expected: "`minimum_gain` with `rule: threshold` alone",
    found: `rule: ${rule}`,
    todo: "write `rule: threshold`, or remove `minimum_gain`",
  });
}
