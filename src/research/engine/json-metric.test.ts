import { describe, expect, test } from "vitest";
import { numberInJson } from "./json-metric.js";

const read = (text: string, key = "val.loss", file = "metrics.json"): number | string => numberInJson(text, { file, key });

describe("a number in a JSON file", () => {
  test.each([
    ['{"val": {"loss": 0.25}}', "val.loss", 0.25],
    ['{"val.loss": 3, "val": {"loss": 4}}', "val.loss", 3],
    ['{"a": {"b.c": {"d": -1e-3}}}', "a.b.c.d", -0.001],
    ['{"a.b": {"x": 1}, "a": {"b": {"c": 2}}}', "a.b.c", 2],
    ['{"history": {"loss": [3, 2, 1]}}', "history.loss.-1", 1],
    ['[{"loss": 7}]', "0.loss", 7],
    ['\ufeff{"loss": 0}', "loss", 0],
    ["12", "12", "it has no `12`"],
    ['{"val": 3}', "val.loss", "it has no `val.loss` (its names: val)"],
    ['{"val": {"loss": "0.25"}}', "val.loss", '`val.loss` is no finite number: "0.25"'],
    ['{"val": {"loss": null}}', "val.loss", "`val.loss` is no finite number: null"],
    ['{"val": {"loss": 1e999}}', "val.loss", "`val.loss` is no finite number: Infinity"],
    ['{"val": {"loss": NaN}}', "val.loss", expect.stringMatching(/^it is no JSON: /)],
    ["", "val.loss", expect.stringMatching(/^it is no JSON: /)],
    ["{}", "__proto__.loss", "it has no `__proto__.loss` (its names: none)"],
    ["{}", "constructor.length", "it has no `constructor.length` (its names: none)"],
    ['{"loss": [1]}', "loss.length", expect.stringMatching(/^it has no `loss.length`/)],
    ["[".repeat(200_000) + "]".repeat(200_000), "0", "`0` is no finite number: a list of 1"],
  ])("%.60s at %s → %s", (text, key, expected) => {
    expect(read(text, key)).toEqual(expected);
  });

  test("of JSON Lines the last line counts", () => {
    expect(read('{"loss": 3}\n{"loss": 2}\n\n', "loss", "log.jsonl")).toBe(2);
    expect(read('{"loss": 3}\n{"loss": 2}\n', "loss")).toMatch(/no JSON/);
  });
});
