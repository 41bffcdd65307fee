import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Trial } from "../../core/harness/state.js";
import { BlobMissingError } from "../../core/ports/ledger-errors.js";
import { digestOf } from "../../core/protocol/canonical.js";
import type { TrialStatus } from "../../core/protocol/status.js";
import { errorLine, failureCauses, normalized } from "./failure-groups.js";

const blobs = new Map<string, Uint8Array>();
let reads = 0;
const blob = (digest: string): Uint8Array => {
  reads += 1;
  const found = blobs.get(digest);
  if (found === undefined) throw new BlobMissingError(digest, "the test");
  return found;
};

function put(text: string): { blob: string; bytes: number } {
  const bytes = new TextEncoder().encode(text);
  blobs.set(digestOf(bytes), bytes);
  return { blob: digestOf(bytes), bytes: bytes.length };
}

function failed(id: number, stderr: string, status: TrialStatus = "crashed", stdout = ""): Trial {
  const failure = { stage: "train", stdout: put(stdout), stderr: put(stderr) };
  return { id: `t${id}`, kind: "search", phase: "ended", status, stage: "train", reason: "train exited with code 1", failure } as Trial;
}

const python = (line: string): string =>
  `Traceback (most recent call last):\n  File "/app/train.py", line 7, in <module>\n    x()\n${line}\n`;

describe("what an output says went wrong", () => {
  it("is the exception, wherever it stands before what only says where", () => {
    expect(errorLine(python("ValueError: bad shape (3, 4)"))).toBe("ValueError: bad shape (3, 4)");
    expect(
      errorLine("file.js:3\n  throw new Error('x')\n\nError: x\n    at main (file.js:3:9)\n    at node:internal\n\nNode.js v20.11.0\n"),
    ).toBe("Error: x");
    expect(errorLine("sh: 1: nvcc: not found\nstopping\n")).toBe("sh: 1: nvcc: not found");
    expect(errorLine("one\ntwo\n\n")).toBe("two");
    expect(errorLine("\n \n")).toBeNull();
    expect(errorLine("\u001b[31mKeyError: 'a'\u001b[0m\r\n")).toBe("KeyError: 'a'");
  });

  it("differs between trials in numbers, folders and addresses alone, and then is one", () => {
    const one = normalized("KeyError: 12 in /scratch/a1/t7/data.csv at 0x7f3a (1.5e-3 s), object 0123456789abcdef");
    expect(one).toBe("KeyError: N in …/data.csv at 0x… (N s), object …");
    expect(normalized("KeyError: 3 in /scratch/b2/t19/data.csv at 0xff (2.0e+1 s), object fedcba9876543210")).toBe(one);
    expect(normalized("KeyError: 3 in /scratch/other.csv")).not.toBe(one);
  });

  it("takes any line, as long as it may be, in no time that grows with it", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300, unit: "binary" }), (text) => {
        expect(normalized(text).length).toBeLessThanOrEqual(200);
        expect(errorLine(text)?.includes("\n") ?? false).toBe(false);
      }),
    );
    expect(normalized("a/".repeat(200_000)).length).toBeLessThanOrEqual(200);
  });
});

describe("failures by cause", () => {
  it("groups by status, stage and what the output says, most frequent first, with an example and a hint", () => {
    const causes = failureCauses(
      [
        failed(1, python("ModuleNotFoundError: No module named 'torch'")),
        failed(2, python("IndexError: index 9 is out of bounds for size 7")),
        failed(3, python("IndexError: index 12 is out of bounds for size 3")),
        failed(4, "", "timed_out"),
      ],
      blob,
    );
    expect(causes.map(({ n, cause, trials }) => [n, cause, trials])).toEqual([
      [2, "IndexError: index N is out of bounds for size N", ["t2", "t3"]],
      [1, "ModuleNotFoundError: No module named 'torch'", ["t1"]],
      [1, "train exited with code N", ["t4"]],
    ]);
    expect(causes[0]).toMatchObject({ example: { trial: "t3", line: "IndexError: index 12 is out of bounds for size 3" }, hint: "" });
    expect(causes[1]?.hint).toContain("runtime lacks");
    expect(causes[2]?.hint).toContain("wall limit");
  });

  it("reads standard output where standard error is silent, and the reason where nothing is kept", () => {
    const said = failed(1, "", "crashed", "Error: in words\n");
    const gone = failed(2, "Error: gone\n");
    blobs.delete(gone.failure?.stderr.blob ?? "");
    expect(failureCauses([said, gone], blob).map(({ cause }) => cause)).toEqual(["Error: in words", "train exited with code N"]);
    expect(failureCauses([said], undefined).map(({ cause }) => cause)).toEqual(["train exited with code N"]);
  });

  it("stays bounded, in what it reads and in what it shows", () => {
    const many = Array.from({ length: 2000 }, (_each, index) =>
      failed(index + 1, python(`Error: ${"abcdefghij"[index % 10]}${"xyz"[index % 3]}`)),
    );
    reads = 0;
    const causes = failureCauses(many, blob);
    expect(causes.length).toBe(20);
    expect(causes[0]?.trials.length).toBe(5);
    expect(reads).toBeLessThan(40);
  });
});
