import { describe, expect, it } from "vitest";
import type { Parameter } from "./environment.js";
import { findParameter, readParameters } from "./parameters.js";

const declared = (name: string, file: string, after: string): Parameter => ({
  name,
  file,
  after,
  type: "float",
  low: 0,
  high: 1,
  log: false,
});

describe("findParameter", () => {
  it.each([
    ["RATE = 0.1  # slow", "0.1"],
    ["RATE = -1e-3\n", "-1e-3"],
    ["RATE = .5)", ".5"],
    ["RATE = 12,", "12"],
    ["RATE = 1_000", "1"],
  ])("%s", (content, text) => {
    expect(findParameter({ after: "RATE = " }, content)).toMatchObject({ text, value: Number(text), start: 7 });
  });

  it.each([
    ["nothing here", /is not in it/],
    ["RATE = 1\nRATE = 2", /more than once/],
    ["RATE = slow", /no number follows/],
  ])("says why not: %s", (content, reason) => {
    expect(findParameter({ after: "RATE = " }, content)).toEqual({ reason: expect.stringMatching(reason) });
  });
});

describe("readParameters", () => {
  const parameters = [declared("rate", "a.py", "RATE = "), declared("depth", "a.py", "DEPTH = "), declared("width", "b.json", '"width": ')];
  const files = (rate: string, depth: string, rest = ""): Map<string, string> =>
    new Map([
      ["a.py", `DEPTH = ${depth}\n${rest}RATE = ${rate}\n`],
      ["b.json", '{"width": 3}'],
    ]);

  it("calls two programs one that differ by their declared numbers alone", () => {
    const [one, other] = [readParameters(parameters, files("0.1", "3")), readParameters(parameters, files("0.25", "12"))];
    expect(one?.blanked).toEqual(other?.blanked);
    expect(other?.values).toMatchObject({ rate: { value: 0.25 }, depth: { value: 12 }, width: { value: 3 } });
    expect(readParameters(parameters, files("0.1", "3", "more\n"))?.blanked).not.toEqual(one?.blanked);
  });

  it("knows nothing of a program that has lost one of them", () => {
    expect(readParameters(parameters, new Map([["a.py", "DEPTH = 1\nRATE = 2\n"]]))).toBeNull();
  });
});
