import { describe, expect, test } from "vitest";
import { loadEnvironment } from "../../src/adapters/environments/load.js";
import { isSelfReported } from "../../src/core/protocol/environment.js";
import { fill, problemsOf, temporaryFolder } from "./environment-fixture.js";

async function packWith(metric: string, outputs = "results/metrics.json"): Promise<string> {
  return fill(await temporaryFolder(), {
    "train.sh": "true",
    "environment.yaml": `schema: trialist/environment@1
name: small
surface: { editable: [train.sh] }
baseline: .
stages:
  - { name: train, run: sh train.sh, outputs: ["${outputs}"] }
  - { name: after, run: "true" }
metrics: [${metric}]
`,
  });
}

describe("a metric from a JSON file that the candidate writes", () => {
  test.each([
    ["{ name: val.loss, direction: minimize, from: { json: ./results/metrics.json } }", "val.loss"],
    ["{ name: loss, direction: minimize, from: { json: results/metrics.json, key: a b.-1, stage: train } }", "a b.-1"],
  ])("%s", async (metric, key) => {
    const { environment } = await loadEnvironment(await packWith(metric));
    expect(environment.metrics[0]?.from).toEqual({ kind: "json", stage: "train", file: "results/metrics.json", key });
    expect(environment.metrics.map(isSelfReported)).toEqual([true]);
  });

  test("a glob may declare the file", async () => {
    const folder = await packWith("{ name: loss, direction: minimize, from: { json: results/metrics.json } }", "results/**");
    expect((await loadEnvironment(folder)).environment.metrics[0]?.from).toMatchObject({ kind: "json", stage: "train" });
  });

  test.each([
    ["{ json: other.json }", /which no candidate stage declares/],
    ["{ json: results/metrics.json, stage: after }", /no candidate stage called after declares/],
    ["{ json: results/metrics.json, stage: gone }", /which is no candidate stage/],
    ["{ json: /etc/passwd }", /does not fit/],
    ["{ json: ../up.json }", /does not fit/],
    ['{ json: results/metrics.json, key: "" }', /does not fit/],
    ['{ json: results/metrics.json, key: "a\\nb" }', /does not fit/],
  ])("%s is refused", async (from, message) => {
    const [problem] = await problemsOf(await packWith(`{ name: loss, direction: minimize, from: ${from} }`));
    expect(problem?.what).toMatch(message);
    expect(problem?.line).toBe(8);
  });
});
