import { expect, test } from "vitest";
import { type LimitFacts, limitThatEnded } from "./verdict.js";

const limits = { wallMs: 1000, cpuMs: 1000, memoryBytes: 2 ** 26, cpus: 1, processes: 10, diskBytes: 2 ** 20, outputBytes: 100 };
const calm: LimitFacts = {
  limits,
  killedFor: null,
  stopped: false,
  endedBadly: false,
  outOfMemoryKills: 0,
  processRefusals: 0,
  cpuMs: 5,
  diskBytes: 0,
  temporaryFull: false,
  outputBytes: 0,
};

test.each([
  ["nothing happened", {}, null],
  ["a plain failure", { endedBadly: true }, null],
  ["killed at the wall", { killedFor: "wall", endedBadly: true, processRefusals: 3 }, "wall"],
  ["stopped from outside", { stopped: true, endedBadly: true, cpuMs: 2000 }, null],
  ["a child was killed for memory and the parent went on", { outOfMemoryKills: 1 }, "memory"],
  ["more CPU time than allowed, exit 0", { cpuMs: 1001 }, "cpu"],
  ["printed too much before we looked", { outputBytes: 101 }, "output"],
  ["left too much on disk", { diskBytes: 2 ** 20 + 1 }, "disk"],
  ["a full temporary folder and a failure", { temporaryFull: true, endedBadly: true }, "disk"],
  ["a full temporary folder, handled", { temporaryFull: true }, null],
  ["refused a fork and failed", { processRefusals: 1, endedBadly: true }, "processes"],
  ["refused a fork, handled", { processRefusals: 1 }, null],
] as const)("%s", (_, facts, expected) => {
  expect(limitThatEnded({ ...calm, ...facts })).toBe(expected);
});
