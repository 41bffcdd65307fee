import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Project } from "../../src/app/project.js";
import { commandLine, driven } from "../support/drive.js";
import { Lab, proposes, scriptedResearcher } from "../support/lab.js";
import type { Step } from "../support/run-driver.js";

/** Held-out data and the sealed file are nobody's business while a run decides: it decides the same without them, and never looks. */
const seed = 11;
let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

const predict = (value: number): string =>
  `for id in $(cat $TRIALIST_DATA/ids.txt); do echo "$id,$((${value} + TRIALIST_SEED % 7))"; done > $TRIALIST_OUTPUT/predictions.csv\n`;

/** The mean distance from the labels, of the split whose labels the stage is shown. */
const evaluate = `awk -F, -v labels="$TRIALIST_LABELS/labels.csv" '
  FILENAME == labels { label[$1] = $2; next }
  $1 in label { ids = ids comma "\\"" $1 "\\""; gap = $2 - label[$1]; if (gap < 0) gap = -gap; values = values comma gap; comma = ","; sum += gap; n += 1 }
  END { printf "{\\"metrics\\":{\\"gap\\":%s},\\"records\\":{\\"metric\\":\\"gap\\",\\"ids\\":[%s],\\"values\\":[%s]}}", sum / n, ids, values }
  ' "$TRIALIST_LABELS/labels.csv" "$TRIALIST_ARTIFACTS/predictions.csv" > "$TRIALIST_MEASUREMENT"
`;

function pack(data: string): Record<string, string> {
  return {
    "environment.yaml": `schema: trialist/environment@1
name: secretive
description: "predict a number for every id"
surface: { editable: ["main.sh"] }
baseline: baseline/
data: ${data}
stages:
  - { name: train, run: sh main.sh, outputs: [predictions.csv] }
  - { name: measure, trust: evaluator, run: sh evaluate.sh }
  - { name: final, trust: held-out, run: sh evaluate.sh, purpose: held-out }
metrics: [{ name: gap, direction: minimize }]
noise: { calibrate: 2, remeasure_every: 2 }
promotion: { rule: confirmed, confirmations: 2 }
`,
    "evaluate.sh": evaluate,
    "baseline/main.sh": predict(900),
    ...scriptedResearcher(seed, [
      proposes({ "main.sh": predict(400) }),
      proposes({ "main.sh": "exit 3\n" }),
      proposes({ "main.sh": predict(300) }),
    ]),
  };
}

const labelled = { "public/ids.txt": "a\nb\nc\nd\n", "inloop/labels.csv": "a,100\nb,110\n", "heldout/labels.csv": "c,120\nd,130\n" };
const ready = Object.fromEntries(Object.entries(labelled).map(([path, text]) => [`data/${path}`, text]));
const prepare = Object.entries(labelled)
  .map(([path, text]) => `mkdir -p $1/${path.slice(0, path.indexOf("/"))}; printf '${text.replaceAll("\n", "\\n")}' > $1/${path}\n`)
  .join("");
const packs = {
  prepared: { ...pack("{ prepare: prepare.sh, public: public, inloop: inloop, heldout: heldout }"), "prepare.sh": `#!/bin/sh\n${prepare}` },
  "ready-made": { ...pack("{ public: data/public, inloop: data/inloop, heldout: data/heldout }"), ...ready },
};

function steps(name: string): Step[] {
  const budget = { trials: 3, costUsd: null, tokens: null, computeMs: null, wallMs: null };
  return [
    { do: "create", name, request: { seed, budget, organization: { name: "tree", configuration: { drafts: 50 } } } },
    { do: "work", name },
  ];
}

/** Every folder of the cache that holds held-out data, and every sealed file of the project. */
function secrets(): string[] {
  const found = [lab.cache, lab.project].flatMap((root) =>
    readdirSync(root, { recursive: true, encoding: "utf8" }).map((path) => join(root, path)),
  );
  return found.filter((path) => /\/(heldout|sealed\.sqlite)$/.test(path));
}

const hasStrace = installed("strace");

function installed(program: string): boolean {
  return spawnSync(program, ["--version"]).status === 0;
}

describe.each(Object.entries(packs))("held-out data that is %s", (how, files) => {
  it("is not missed by a run when it is moved away, nor is the sealed file", async () => {
    lab.write(files);
    if (existsSync(join(lab.pack, "prepare.sh"))) chmodSync(join(lab.pack, "prepare.sh"), 0o755);
    const [first] = await driven(lab, [...steps("first"), { do: "report", name: "first" }]);
    const look = await commandLine(lab, "heldout", "first", "--json").ended;
    expect([look.code, look.stderr]).toEqual([0, ""]);
    expect(JSON.parse(look.stdout)).toMatchObject({ looks: 1, heldout: { gap: expect.any(Number) } });
    expect(existsSync(join(new Project(lab.project).runFolder("first"), "sealed.sqlite"))).toBe(true);
    const secret = secrets();
    expect(secret.length).toBeGreaterThanOrEqual(2);
    for (const path of secret) renameSync(path, `${path}-moved`);

    const [second] = await driven(lab, [...steps("second"), { do: "report", name: "second" }]);
    expect(first).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(second).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(second?.projection).toEqual(first?.projection);
  });

  it.runIf(hasStrace)("is opened by no process of a run, and neither is a sealed file", { timeout: 300_000 }, async () => {
    lab.write(files);
    if (existsSync(join(lab.pack, "prepare.sh"))) chmodSync(join(lab.pack, "prepare.sh"), 0o755);
    // Data are prepared once, before any run decides. Ready-made ones are frozen with the pack when a run is made, which
    // lists the names of all its files: there the trace begins with the run's own process.
    await driven(lab, steps("first"));
    const [make, ...decide] = steps("traced");
    if (make === undefined) throw new Error("no steps");
    if (how === "ready-made") await driven(lab, [make]);
    await lab.leftovers();
    const trace = join(lab.folder, "trace");
    const through = ["strace", "-f", "-qq", "-s", "4096", "-o", trace, "-e", "trace=%file"];
    const [report] = await driven(lab, [...(how === "ready-made" ? [] : [make]), ...decide, { do: "report", name: "traced" }], { through });
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true } });

    const lines = readFileSync(trace, "utf8").split("\n");
    // The trace sees the whole tree: the ledger by its owner, and each stage's program in its sandbox.
    expect(lines.some((line) => line.includes("ledger.sqlite"))).toBe(true);
    expect(lines.filter((line) => /exec.*"main\.sh"/.test(line)).length).toBeGreaterThan(3);
    expect(lines.filter((line) => line.includes("/inloop")).length).toBeGreaterThan(0);
    expect(lines.filter((line) => line.includes("sealed.sqlite"))).toEqual([]);
    expect(lines.filter((line) => /heldout/.test(line) && !aboutOurOwnSources(line))).toEqual([]);
  });
});

/** The program's own modules whose names speak of held-out data. */
function aboutOurOwnSources(line: string): boolean {
  return /node_modules\/\.cache\/trialist\/test-build\/[^"]*heldout[^"]*\.js/.test(line);
}

if (!hasStrace) {
  console.warn(
    "\n\n*** strace is not installed: NO TEST SHOWED that a run opens neither held-out data nor a sealed file (apt-get install strace) ***\n\n",
  );
}
