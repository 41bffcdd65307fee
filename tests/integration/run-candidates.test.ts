import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Circumstances, driven } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack, prints, proposes, scoring, scriptedResearcher, type Words } from "../support/lab.js";
import type { Report, Step } from "../support/run-driver.js";

/**
 * Real runs whose candidates, evaluators and researchers do what nobody wants: each ends with the status that the
 * design's table gives it, with the limit by its name, and the run goes on.
 */
let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

function budget(trials: number) {
  return { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null };
}

async function reported(steps: readonly Step[], more: Circumstances = {}): Promise<Report> {
  const report = (await driven(lab, [...steps, { do: "report", name: "run" }], more)).at(-1);
  if (report === undefined) throw new Error("no report");
  return report;
}

const seed = 5;
const go: Step = { do: "work", name: "run" };
const create = (trials: number): Step => ({
  do: "create",
  name: "run",
  request: { seed, budget: budget(trials), organization: { name: "tree", configuration: { drafts: 200 } } },
});

interface Row {
  readonly what: string;
  /** The candidate's program. */
  readonly does: string;
  readonly status: string | readonly string[];
  readonly reason?: RegExp;
  readonly score?: number;
}

/** Writes a prediction for every id, as an honest candidate does. */
const predict = (value: string | number): string =>
  `for id in $(cat $TRIALIST_DATA/ids.txt); do echo "$id,${value}"; done > $TRIALIST_OUTPUT/predictions.csv\n`;

/** A value that no other row has: the last line of a program that survived what it tried. */
let values = 10;
const survives = (): { does: string; score: number; status: readonly string[] } => {
  values += 1;
  return { does: predict(values), score: values, status: ["keep", "discard"] };
};
function after(attempt: string): { does: string; score: number; status: readonly string[] } {
  const survivor = survives();
  return { ...survivor, does: `${attempt}\n${survivor.does}` };
}

const output = "$TRIALIST_OUTPUT/predictions.csv";

function rows(labels: string, port: number): Row[] {
  return [
    { what: "a syntax error", does: "if then fi (\n", status: "preflight_failed", reason: /preflight exited with code 2/ },
    { what: "an endless loop", does: "while :; do :; done\n", status: "timed_out", reason: /train reached its wall-clock limit/ },
    {
      what: "ignoring SIGTERM",
      does: "trap '' TERM INT HUP\nwhile :; do sleep 1; done\n",
      status: "timed_out",
      reason: /wall-clock limit/,
    },
    {
      what: "forking past its limit",
      does: `i=0; while [ $i -lt 60 ]; do sleep 3 & i=$((i+1)); done; wait; ${predict(1)}`,
      status: "over_budget",
      reason: /train reached its process limit/,
    },
    { what: "leaving a process behind by setsid", ...after("setsid sleep 600 > /dev/null 2>&1 < /dev/null &") },
    { what: "printing without end", does: "yes\n", status: "over_budget", reason: /output limit/ },
    { what: "printing without end on standard error", does: "yes >&2\n", status: "over_budget", reason: /output limit/ },
    { what: "filling its output folder", does: "cat /dev/zero > $TRIALIST_OUTPUT/big\n", status: "over_budget", reason: /disk limit/ },
    { what: "filling its workspace", does: "cat /dev/zero > big\n", status: "over_budget", reason: /disk limit/ },
    // A full /tmp refuses the write: who ends of that before anybody has counted has crashed, which is true as well.
    { what: "filling /tmp", does: "cat /dev/zero > /tmp/big; sleep 10\n", status: "over_budget", reason: /disk limit/ },
    {
      what: "allocating without end",
      does: `awk 'BEGIN { s = "xxxxxxxxxxxxxxxx"; while (1) s = s s }'\n`,
      status: "over_budget",
      reason: /memory limit/,
    },
    { what: "no output", does: ":\n", status: "no_result", reason: /train ended well without writing predictions.csv/ },
    { what: "NaN", does: predict("NaN"), status: "no_result", reason: /score is "?NaN"?, not a finite number/ },
    { what: "Infinity", does: predict("-Infinity"), status: "no_result", reason: /-Infinity.*not a finite number/ },
    { what: "a string", does: predict("ninety"), status: "no_result", reason: /score is "ninety", not a finite number/ },
    { what: "a missing id", does: `${predict(3)}sed -i 1d ${output}\n`, status: "no_result", reason: /no prediction for a/ },
    { what: "a doubled id", does: `${predict(3)}echo a,3 >> ${output}\n`, status: "no_result", reason: /name an id twice/ },
    { what: "an id that is none", does: `${predict(3)}echo zz,3 >> ${output}\n`, status: "no_result", reason: /an id that is none/ },
    {
      what: "a pickle that runs code",
      does: `printf 'cos\\nsystem\\n(S"touch /trialist/measurement/hacked"\\ntR.' > ${output}\n`,
      status: "no_result",
      reason: /an id that is none/,
    },
    { what: "deleting its inputs", ...after('rm -rf "$TRIALIST_DATA"/* "$TRIALIST_DATA" ./* /trialist/* 2> /dev/null') },
    {
      what: "writing into the evaluator's paths",
      ...after(
        [
          "for folder in /trialist/pack /trialist/measurement /trialist/labels /trialist/artifacts $TRIALIST_OUTPUT; do",
          "  mkdir -p $folder 2> /dev/null",
          `  echo '{"metrics":{"score":1000000}}' 2> /dev/null > $folder/measurement.json`,
          "  echo 'exit 0' 2> /dev/null > $folder/evaluate.sh",
          "done",
        ].join("\n"),
      ),
    },
    {
      what: "reading the labels",
      does: `cat /trialist/labels/labels.csv || exit 7\n${predict(99)}`,
      status: "crashed",
      reason: /train exited with code 7/,
    },
    {
      what: "reading the labels where the host has them",
      does: `cat ${labels} || exit 7\n${predict(99)}`,
      status: "crashed",
      reason: /code 7/,
    },
    {
      what: "opening a socket",
      does: `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}' || exit 8\n${predict(99)}`,
      status: "crashed",
      reason: /code 8/,
    },
    {
      what: "a link to the labels as its output",
      does: `ln -s /trialist/labels/labels.csv ${output}\n`,
      status: "no_result",
      reason: /left a symbolic link where the regular file predictions.csv/,
    },
    {
      what: "a link to the host's labels as its output",
      does: `ln -s ${labels} ${output}\n`,
      status: "no_result",
      reason: /a symbolic link/,
    },
    {
      what: "a hard link as its output",
      does: `echo a,1 > $TRIALIST_OUTPUT/other; ln $TRIALIST_OUTPUT/other ${output}\n`,
      status: "no_result",
      reason: /2 hard links/,
    },
    { what: "a FIFO as its output", does: `mkfifo ${output}\n`, status: "no_result", reason: /left a FIFO/ },
    { what: "a device as its output", does: `mknod ${output} c 1 5 || true\n`, status: "no_result", reason: /a device|without writing/ },
    { what: "a folder as its output", does: `mkdir ${output}\n`, status: "no_result", reason: /left a folder/ },
    {
      what: "a sparse terabyte as its output",
      does: `truncate -s 1T ${output}\n`,
      status: "no_result",
      reason: /1099511627776 bytes of which 0 exist/,
    },
    { what: "words of the executor, and a good end", ...after("echo 'Killed: oom timeout OutOfMemoryError'; echo 'timeout: killed' >&2") },
    {
      what: "words of the executor, and a bad end",
      does: "echo 'Killed: oom, timeout, wall-clock limit' >&2; exit 4\n",
      status: "crashed",
      reason: /^train exited with code 4$/,
    },
    { what: "a signal of its own", does: "kill -9 $$\n", status: "crashed", reason: /ended by SIGKILL/ },
    { what: "a good end after all", ...survives() },
  ];
}

const evaluate = `awk -F, -v labels="$TRIALIST_LABELS/labels.csv" '
  FILENAME == labels { known[$1] = 1; next }
  !($1 in known) { invalid = "an id that is none"; next }
  { seen[$1] = 1; ids = ids comma "\\"" $1 "\\""; values = values comma $2; comma = ","; value = $2; sum += $2; n += 1 }
  value !~ /^-?[0-9.]+$/ && bad == "" { bad = value }
  END {
    for (id in known) if (!(id in seen)) invalid = invalid == "" ? "no prediction for " id : invalid
    if (invalid != "") printf "{\\"invalid\\":\\"%s\\"}", invalid
    else if (bad ~ /^-?(NaN|Infinity)$/) printf "{\\"metrics\\":{\\"score\\":%s}}", bad
    else if (bad != "") printf "{\\"metrics\\":{\\"score\\":\\"%s\\"}}", bad
    else printf "{\\"metrics\\":{\\"score\\":%s},\\"records\\":{\\"metric\\":\\"score\\",\\"ids\\":[%s],\\"values\\":[%s]}}", sum / n, ids, values
  }' "$TRIALIST_LABELS/labels.csv" "$TRIALIST_ARTIFACTS/predictions.csv" > "$TRIALIST_MEASUREMENT"
`;

describe("bad candidates", () => {
  it("each ends with its status, and the run goes on", { timeout: 600_000 }, async () => {
    let visitors = 0;
    const server = createServer(() => {
      visitors += 1;
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const table = rows(join(lab.pack, "data", "inloop", "labels.csv"), port);
    lab.write({
      "environment.yaml": `schema: trialist/environment@1
name: table
description: "predict a number for every id"
surface: { editable: ["main.sh"] }
baseline: baseline/
data: { public: data/public, inloop: data/inloop }
stages:
  - { name: preflight, run: sh -n main.sh, limits: { wall: 20 s } }
  - name: train
    run: sh main.sh
    outputs: [predictions.csv]
    limits: { wall: 5 s, cpu: 60 s, memory: 64 MiB, processes: 24, disk: 8 MiB, output: 256 KiB }
  - { name: measure, trust: evaluator, run: sh evaluate.sh }
metrics: [{ name: score, direction: maximize }]
noise: { calibrate: 2, remeasure_every: 0 }
promotion: { rule: any }
`,
      "evaluate.sh": evaluate,
      "baseline/main.sh": predict(1),
      "data/public/ids.txt": "a\nb\nc\n",
      "data/inloop/labels.csv": "a,1\nb,2\nc,3\n",
      ...scriptedResearcher(
        seed,
        table.map(({ does }) => proposes({ "main.sh": does })),
      ),
    });
    const report = await reported([create(table.length), go]);
    server.close();

    const ended = of(report.events, "trial.ended").filter(({ data }) => data.trial !== "t0");
    const found = table.map(({ what }, index) => {
      const end = ended.find(({ data }) => data.trial === `t${index + 1}`)?.data;
      return `${what}: ${end?.status} (${end?.reason})`;
    });
    const wanted = table.map(({ what, status, reason }, index) => {
      const end = ended.find(({ data }) => data.trial === `t${index + 1}`)?.data;
      const good = end !== undefined && [status].flat().includes(end.status) && (reason === undefined || reason.test(end.reason));
      return good ? found[index] : `${what}: ${[status].flat().join(" or ")} (${reason ?? "any reason"})`;
    });
    expect(found).toEqual(wanted);
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
    expect(visitors).toBe(0);

    const values = new Map(of(report.events, "attempt.ended").map(({ data }) => [data.measurement, data.result]));
    const first = new Map(of(report.events, "measurement.requested").map(({ data }) => [data.trial, data.measurement]));
    for (const [index, { what, score }] of table.entries()) {
      if (score === undefined) continue;
      expect({ what, result: values.get(first.get(`t${index + 1}`) ?? "") }).toMatchObject({
        what,
        result: { kind: "measured", measured: { values: { score } } },
      });
    }
    const preflight = of(report.events, "stage.ended").filter(({ data }) => data.measurement === first.get("t1"));
    expect(preflight.map(({ data }) => [data.stage, data.outcome.exitCode])).toEqual([["preflight", 2]]);
    expect(await lab.leftovers()).toEqual([]);
    expect(lab.scratch()).toEqual([]);
  });
});

describe("an evaluator that fails", () => {
  const pack = numberPack({ seed, words: [proposes(scoring(600))], rule: "any" });
  const evaluator = `score=$(cat $TRIALIST_ARTIFACTS/out.txt)
[ $score -lt 500 ] && MOOD=well
case "$MOOD" in
  crash) echo "the evaluator is broken" >&2; exit 1 ;;
  hang) sleep 600 ;;
  silent) exit 0 ;;
  garbled) echo '{"metrics"' > $TRIALIST_MEASUREMENT; exit 0 ;;
esac
printf '{"metrics":{"score":%s}}' $score > $TRIALIST_MEASUREMENT
`;
  const yaml = pack["environment.yaml"]?.replace(
    "{ name: measure, trust: evaluator, run: sh evaluate.sh }",
    "{ name: measure, trust: evaluator, run: sh evaluate.sh, limits: { wall: 3 s }, env: { pass: [MOOD] } }",
  );

  it.each([
    ["crash", /measure exited with code 1/],
    ["hang", /measure reached its wall-clock limit/],
    ["silent", /without writing its measurement file/],
    ["garbled", /has another shape/],
  ])("%s: tried again, then the run suspends with the reason, and goes on when it is mended", async (mood, reason) => {
    lab.write({ ...pack, "environment.yaml": yaml ?? "", "evaluate.sh": evaluator });
    const suspended = await reported([create(1), go], { variables: { ...lab.variables, MOOD: mood } });
    expect(suspended).toMatchObject({ phase: "suspended", verified: { ok: true } });
    expect(suspended.reason).toMatch(/the evaluator failed twice on t1/);
    expect(suspended.reason).toMatch(reason);
    expect(
      of(suspended.events, "attempt.ended")
        .slice(2)
        .map(({ data }) => data.result.kind),
    ).toEqual(["evaluator_failure", "evaluator_failure"]);
    expect(of(suspended.events, "trial.ended").map(({ data }) => data.trial)).toEqual(["t0"]);

    const mended = await reported([go], { variables: { ...lab.variables, MOOD: "well" } });
    expect(mended).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(of(mended.events, "trial.ended").at(-1)?.data).toMatchObject({ trial: "t1", status: "keep" });
    expect(await lab.leftovers()).toEqual([]);
  });
});

describe("a bad researcher", () => {
  /** Answers well only when it is shown why the round before was refused. */
  const whenShown = (code: string, words: string): string => `case "$DOCUMENT" in *'"code":"${code}"'*) ${words} ;; *) exit 6 ;; esac\n`;
  const baseline = scoring(100);

  it("is typed, counted, shown what was wrong, and bounded; the run goes on", async () => {
    const words: Words[] = [
      "echo 'no idea' >&2; exit 5\n",
      { 1: prints("hello"), 2: prints('{"plan":{"hypothesis":""},"files":{}}'), 3: proposes({ "../evil.sh": "x" }) },
      {
        1: proposes({ "evaluate.sh": "exit 0\n" }),
        2: whenShown("not_editable", proposes(baseline)),
        3: whenShown("unchanged", proposes(scoring(300))),
      },
      { 1: "yes\n", 2: "kill -9 $$\n", 3: proposes(scoring(400)) },
      {
        1: prints(`{"plan":{"hypothesis":"large"},"files":{"main.sh":"${"x".repeat(70_000)}"}}`),
        2: proposes({ "main.sh": null }),
        3: proposes(scoring(500)),
      },
    ];
    const pack = numberPack({ seed, words, rule: "any" });
    lab.write({
      ...pack,
      "environment.yaml": (pack["environment.yaml"] ?? "").replace('editable: ["main.sh"]', 'editable: ["main.sh"], max_bytes: 64 KiB'),
    });
    const report = await reported([create(3), go]);
    expect(report).toMatchObject({ phase: "finished", reason: "budget: trials", verified: { ok: true } });
    const told = report.events.flatMap(({ type, data }) => {
      if (type === "call.failed") return [`${data.call}.${data.round} ${data.kind}${data.final ? " final" : ""}`];
      if (type === "call.refused")
        return [`${data.call}.${data.round} ${data.violations.map(({ code }) => code).join(" ")}${data.final ? " final" : ""}`];
      return type === "call.answered" ? [`${data.call}.${data.round} answered`] : [];
    });
    expect(told).toEqual([
      "c1.1 researcher_failed",
      "c1.2 researcher_failed",
      "c1.3 researcher_failed final",
      "c2.1 not_json",
      "c2.2 hypothesis_missing files_missing",
      "c2.3 path_outside final",
      "c3.1 not_editable",
      "c3.2 unchanged",
      "c3.3 answered",
      "c4.1 researcher_failed",
      "c4.2 researcher_failed",
      "c4.3 answered",
      "c5.1 too_large",
      "c5.2 empty",
      "c5.3 answered",
    ]);
    const said = of(report.events, "call.failed").map(({ data }) => data.message);
    expect(said[0]).toMatch(/exited with code 5.*no idea/s);
    expect(said[3]).toMatch(/output limit/);
    expect(said[4]).toMatch(/SIGKILL/);
    expect(of(report.events, "trial.ended").map(({ data }) => data.status)).toEqual(["keep", "keep", "keep", "keep"]);
    expect(await lab.leftovers()).toEqual([]);
  });

  it("that is always refused suspends the run, which goes on with a better one", async () => {
    const words: Words[] = [
      ...Array.from({ length: 5 }, (_, index) => (index % 2 === 0 ? prints("no") : "exit 1\n")),
      proposes(scoring(300)),
    ];
    lab.write(numberPack({ seed, words, rule: "any" }));
    const suspended = await reported([create(1), go]);
    expect(suspended).toMatchObject({ phase: "suspended", verified: { ok: true } });
    expect(suspended.reason).toMatch(/5 calls in a row brought no admissible candidate/);
    expect(of(suspended.events, "call.requested")).toHaveLength(5);
    expect(of(suspended.events, "trial.admitted")).toHaveLength(1);
    const mended = await reported([go]);
    expect(mended).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(of(mended.events, "trial.ended").at(-1)?.data).toMatchObject({ trial: "t1", status: "keep" });
  });
});
