import { type SpawnSyncOptionsWithStringEncoding, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commands } from "../../src/interfaces/cli/registry.js";
import { Lab, numberPack, proposes, scoring } from "../support/lab.js";
import { buildProgram, document, type Ended, expectPlain, inPairs, program, rowsOf, said, trialist } from "./program.js";

/** What a person or a script is told when something is wrong, and the exit code that goes with it. */
const seed = 5;
const runFolder = (lab: Lab, name: string): string => join(lab.project, ".trialist", "runs", name);
const starts = (lab: Lab, name: string, ...more: string[]): string[] => [
  ...["run", lab.pack, "--name", name, "--researcher", "command:sh answer.sh", "--seed", String(seed), "--drafts", "50"],
  ...more,
];

beforeAll(buildProgram);

describe("help", () => {
  const lab = new Lab();
  afterAll(() => lab.remove());

  test("of the program names every command and every exit code", async () => {
    const help = await said(lab, ["--help"]);
    for (const { name, summary } of commands) expect(help.replaceAll(/\s+/g, " ")).toContain(`${name} ${summary}`);
    const codes = [...(/Exit codes:([\s\S]*?)\n\n/.exec(help)?.[1] ?? "").matchAll(/(?:^|·)\s*(\d+) /gm)].map(([, code]) => Number(code));
    expect(codes.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 130]);
    expect(help).toContain("Example:");
    expect(await said(lab, ["--version"])).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test("may be read in part, as head does, without a word of complaint", () => {
    const line = 'set -o pipefail; { sleep 0.3; "$0" "$1" --help && "$0" "$1" list --help; } | true; echo $?';
    const settings: SpawnSyncOptionsWithStringEncoding = { encoding: "utf8", env: lab.variables, stdio: ["ignore", "pipe", "pipe"] };
    const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", line, process.execPath, program], settings);
    expect([stdout, stderr]).toEqual(["0\n", ""]);
  });

  test("of every command has its usage and an example, by --help and by help", async () => {
    expect(commands.length).toBeGreaterThan(15);
    const wrong = await inPairs(commands, async ({ name }) => {
      const [help, asked] = [await said(lab, [name, "--help"]), await said(lab, ["help", name])];
      const [, example = ""] = /\nExample:\n([\s\S]+)$/.exec(help) ?? [];
      const isWhole = help.startsWith(`Usage: trialist ${name} [options]`) && help.includes("--json") && help.includes("--folder <folder>");
      return isWhole && example.includes(`  trialist ${name}`) && asked === help ? [] : [name, help, asked];
    });
    expect(wrong.flat()).toEqual([]);
  });
});

describe("a request that is wrong", () => {
  const lab = new Lab();
  const scratch = join(lab.folder, "scratch");

  beforeAll(async () => {
    lab.write(numberPack({ seed, words: [proposes(scoring(300))], rule: "any" }));
    expect((await trialist(lab, starts(lab, "over", "--max-trials", "1"))).code).toBe(0);
    mkdirSync(scratch);
  });
  afterAll(() => lab.remove());

  const trial = (words: string): readonly string[] => words.split(" ").map((word) => word.replaceAll("␣", ""));
  const refusals: readonly [what: string, words: readonly string[], message: RegExp][] = [
    ["no command", [], /Usage: trialist/],
    ["an unknown command", ["statsu", "over"], /unknown command 'statsu'\n\(Did you mean status\?\)/],
    ["an unknown option", trial("status over --jsn"), /unknown option '--jsn'\n\(Did you mean --json\?\)/],
    ["a missing argument", ["status"], /missing required argument 'run'/],
    ["an argument too many", trial("status over and"), /too many arguments for 'status'/],
    ["a missing option", trial("pause over"), /required option '--reason <text>'/],
    ["a reason of no words", ["pause", "over", "--reason", " "], /--reason expects a few words/],
    ["a note of no words", ["note", "over", " "], /note expects what the researchers are to know/],
    ["a packet that is not there", trial("rescore nope.tar.gz"), /a file that `trialist pack` wrote; found no file of that name/],
    ["an unknown run", trial("status ovre"), /the name of a run of this project; found "ovre"\. Known: over\./],
    ["a run name that leads elsewhere", trial("status ../x"), /a run name of up to 64 letters.*found "\.\.\/x"/],
    ["an empty run name", ["status", ""], /a run name of up to 64 letters.*found ""/],
    ["a very long run name", ["status", "a".repeat(5000)], /a run name of up to 64 letters/],
    ["a run name of other letters", ["status", "é\u0301\u{1f600}"], /a run name of up to 64 letters/],
    ["a run name that would move the cursor", ["status", "\u001b[2J"], /a run name of up to 64 letters.*found "\\u001b\[2J"/],
    ["a new run's name that leads elsewhere", starts(lab, "../x"), /a run name of up to 64 letters.*found "\.\.\/x"/],
    ["an imported run's name that leads elsewhere", trial("import x.jsonl --name ../x"), /a run name of up to 64 letters/],
    ["a name that is taken", starts(lab, "over"), /a name that no run of this project has; found "over".*resume over/],
    ["a duration without a unit", starts(lab, "new", "--max-time", "5"), /--max-time expects a duration with a unit.*"5"/],
    [
      "a duration with a unit that is none",
      starts(lab, "new", "--max-compute", "5 parsec"),
      /--max-compute expects a duration.*"5 parsec"/,
    ],
    ["a duration of nothing", starts(lab, "new", "--max-time", "0s"), /--max-time expects a duration.*"0s"/],
    ["a count that is none", starts(lab, "new", "--max-trials", "some"), /--max-trials expects a whole number, "some"/],
    ["a count below zero", starts(lab, "new", "--max-trials", "-1"), /--max-trials expects a whole number, "-1"/],
    ["a probability above one", starts(lab, "new", "--debug-probability", "7"), /trialist: --debug-probability: Too big/],
    ["a rule that is none", starts(lab, "new", "--rule", "best"), /--rule expects any, threshold or confirmed, best/],
    ["a sandbox that is none", starts(lab, "new", "--sandbox", "docker"), /--sandbox expects bubblewrap or none, docker/],
    ["an organization that is none", starts(lab, "new", "--organization", "swarm"), /an organization: list, tree, sessions; found "swarm"/],
    ["a researcher that is none", ["run", lab.pack], /a researcher: anthropic:MODEL.*command:LINE; found "reference"/],
    ["an environment that is none", trial("check nowhere"), /nowhere\/environment\.yaml: there is no environment here[\s\S]*trialist init/],
    ["a trial that is none", trial("show over t9"), /a trial of this run; found "t9"\. It has t0 to t1/],
    ["a trial named like a part of the language", trial("show over constructor"), /a trial of this run; found "constructor"/],
    ["a trial to apply named so", trial("apply over __proto__"), /a trial of this run; found __proto__/],
    ["a trial to compare that is none", trial("diff over t9"), /a trial of this run; found "t9".*show over/],
    ["a trial to compare with that is none", trial("diff over t1 t9"), /a trial of this run; found "t9".*show over/],
    ["a trial to apply that is none", trial("apply over t9"), /a trial of this run; found t9.*show RUN/],
    ["a trial to retract that is none", trial("retract over t9 --reason x"), /a searched trial of this run.*found t9/],
    ["a finished run to resume", trial("resume over"), /a run that is not over; found over, which is finished.*trialist report over/],
    ["a finished run to pause", trial("pause over --reason x"), /a run that is not over; found a run that is finished/],
    ["a held-out split that is none", trial("heldout over"), /a stage of trust held-out; found number, which has none/],
    ["a file to import that is none", trial("import nowhere.jsonl --name new"), /nowhere\.jsonl: expected an export to read/],
    ["a folder to export to that is none", ["export", "over", "--out", join(lab.folder, "no/x.jsonl")], /expected a path for a new file/],
    ["a folder for a report that nobody can make", trial("report over --out /proc/x"), /\/proc\/x: expected a folder that can be written/],
    ["nothing to verify", ["verify"], /the name of a run, or --all/],
    [
      "flags of init that are not enough",
      trial("init --yes"),
      /nothing for --edit FILE, --run COMMAND, --metric NAME[\s\S]*For example: trialist init/,
    ],
    ["a direction that is none", trial("init --yes --direction up"), /--direction expects maximize or minimize, up/],
  ];

  test.each(refusals)("%s: exit code 2, words on standard error alone, nothing changed", async (_what, words, message) => {
    const before = listing(lab.project);
    const { code, stdout, stderr } = await trialist(lab, words);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n {4}at |This is a defect/);
    expectPlain(stderr);
    expect(listing(lab.project)).toEqual(before);
  });

  test("gives one JSON document with --json, beside the words", async () => {
    const { code, stdout, stderr } = await trialist(lab, ["status", "nobody", "--json"]);
    expect(code).toBe(2);
    const error = { name: "RefusedError", message: expect.stringContaining('found "nobody"'), exitCode: 2 };
    expect(JSON.parse(stdout)).toEqual({ error });
    expect(stderr).toContain('found "nobody"');
  });

  test("means the folder that -C names", async () => {
    const elsewhere = { folder: scratch };
    expect((await document<{ run: string }>(lab, ["status", "over", "-C", lab.project], elsewhere)).run).toBe("over");
    expect((await document<{ name: string }>(lab, ["check", "-C", lab.pack], elsewhere)).name).toBe("number");
    expect((await trialist(lab, ["run", "../pack", "-C", lab.project], elsewhere)).stderr).toMatch(
      /a researcher: anthropic:MODEL.*command:LINE/,
    );
    await said(lab, ["apply", "over", "--to", "../pack/baseline", "-C", lab.project], elsewhere);
    expect(readFileSync(join(lab.pack, "baseline/main.sh"), "utf8")).toBe(scoring(300)["main.sh"]);
    expect(readdirSync(scratch)).toEqual([]);
  });
});

describe("a machine that lacks something", () => {
  const lab = new Lab();
  beforeAll(() => lab.write(numberPack({ seed, words: [], rule: "any" })));
  afterAll(() => lab.remove());

  interface Examined {
    readonly usable: boolean;
    readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly required: boolean; readonly mend: string }[];
  }

  test("is examined by doctor, which says how to mend it", async () => {
    const well = await document<Examined>(lab, ["doctor"]);
    expect([well.usable, well.checks.filter(({ ok, required }) => required && !ok)]).toEqual([true, []]);
    expect(await said(lab, ["doctor"])).toMatch(/^ok +node +\d+\.\d+\.\d+\n[\s\S]*A run can start on this machine\.\n$/);
  });

  const lacks: readonly [what: string, variables: (lab: Lab) => Record<string, string>, message: RegExp][] = [
    ["bubblewrap", () => ({ PATH: "/nonexistent" }), /bubblewrap/],
    [
      "a usable cache folder",
      ({ pack }) => ({ TRIALIST_CACHE: join(pack, "environment.yaml/cache") }),
      /a cache folder that can be written[\s\S]*TRIALIST_CACHE/,
    ],
  ];

  test.each(lacks)("%s: exit code 3 of doctor, check and run, with what to do; no run is begun", async (_what, variables, message) => {
    const more = { variables: variables(lab) };
    const examined = await document<Examined>(lab, ["doctor"], { ...more, code: 3 });
    const missing = examined.checks.filter(({ ok, required }) => required && !ok);
    expect([examined.usable, missing.every(({ mend }) => mend !== "")]).toEqual([false, true]);
    expect(missing.length).toBeGreaterThan(0);
    const tried = await inPairs([["check", lab.pack], starts(lab, "never")], (words) => trialist(lab, words, more));
    for (const { code, stdout, stderr } of tried) {
      expect([code, stdout, stderr]).toEqual([3, "", expect.stringMatching(message)]);
      expect(stderr).not.toMatch(/\n {4}at |This is a defect/);
    }
    expect(existsSync(join(lab.project, ".trialist"))).toBe(false);
  });
});

function listing(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !/-(wal|shm)$/.test(path))
    .sort();
}

describe("an environment that is wrong", () => {
  const lab = new Lab();
  const good = numberPack({ seed, words: [], rule: "any" })["environment.yaml"] ?? "";
  beforeAll(() => lab.write(numberPack({ seed, words: [], rule: "any" })));
  afterAll(() => lab.remove());

  const mistakes: readonly [what: string, change: (yaml: string) => string, message: RegExp][] = [
    [
      "an unknown key",
      (yaml) => yaml.replace("outputs:", "outputz:"),
      /environment\.yaml:7:37: unknown key `outputz` in `stages\[0\]`\n[\s\S]*did you mean `outputs`\?/,
    ],
    [
      "a number without a unit",
      (yaml) => yaml.replace("20 s", "20"),
      /environment\.yaml:7:\d+: `stages\[0\]\.limits\.wall`[\s\S]*"20 s"\?/,
    ],
    [
      "an editable glob that escapes",
      (yaml) => yaml.replace('["main.sh"]', '["../main.sh"]'),
      /environment\.yaml:4:\d+: [\s\S]*what to do: /,
    ],
    [
      "a script that is missing",
      (yaml) => yaml.replace("sh evaluate.sh", "sh evalute.sh"),
      /environment\.yaml:8:\d+: [\s\S]*did you mean `evaluate\.sh`/,
    ],
    ["no YAML", (yaml) => `${yaml}noise: [\n`, /environment\.yaml:\d+:\d+: [\s\S]*what to do: /],
    [
      "a key that would move the cursor",
      (yaml) => `${yaml}"lim\\e[31mits\\x9b2J\\u202E": 3\n`,
      /environment\.yaml:\d+:1: unknown key `lim\\u\{1b\}\[31mits\\u\{9b\}2J\\u\{202e\}`/,
    ],
  ];

  test.each(mistakes)("%s: exit code 2, with file, line, column and what to do", async (_what, change, message) => {
    writeFileSync(join(lab.pack, "environment.yaml"), change(good));
    const [checked, run] = await Promise.all([trialist(lab, ["check", lab.pack]), trialist(lab, starts(lab, "never", "--json"))]);
    for (const { code, stderr } of [checked, run]) {
      expect(code).toBe(2);
      expect(stderr).toMatch(message);
      expectPlain(stderr);
    }
    expect(checked.stdout).toBe("");
    expectPlain(run.stdout);
    expect(JSON.parse(run.stdout)).toMatchObject({ error: { name: "EnvironmentInvalidError", exitCode: 2 } });
    expect(existsSync(join(lab.project, ".trialist"))).toBe(false);
  });
});

describe("a ledger that is not what was written", () => {
  const lab = new Lab();

  beforeAll(async () => {
    lab.write(numberPack({ seed, words: [proposes(scoring(300))], rule: "any" }));
    expect((await trialist(lab, starts(lab, "good", "--max-trials", "1"))).code).toBe(0);
    const export_ = join(lab.folder, "good.jsonl");
    await said(lab, ["export", "good", "--out", export_]);
    const lines = readFileSync(export_, "utf8").split("\n");
    writeFileSync(join(lab.folder, "cut.jsonl"), lines.slice(0, -3).join("\n"));
    writeFileSync(
      join(lab.folder, "altered.jsonl"),
      lines.map((line) => line.replace('"value":', '"valuf":').replace("keep", "keeq")).join("\n"),
    );
    for (const name of ["early", "last", "garbage"]) cpSync(runFolder(lab, "good"), runFolder(lab, name), { recursive: true });
    for (const name of ["-wal", "-shm"]) rmSync(join(runFolder(lab, "garbage"), `ledger.sqlite${name}`), { force: true });
    writeFileSync(join(runFolder(lab, "garbage"), "ledger.sqlite"), "not a database, and long enough to be looked at as one\n".repeat(50));
  });
  afterAll(() => lab.remove());

  /** Changes one byte of an event's text. Returns its number. */
  function flip(name: string, which: string): number {
    const db = new Database(join(runFolder(lab, name), "ledger.sqlite"));
    try {
      const row = db.prepare<[], { sequence: number; data: string }>(`SELECT sequence, data FROM events WHERE ${which}`).get();
      if (row === undefined) throw new Error("no such event");
      const changed = row.data.replace(/[a-z]/, (letter) => (letter === "a" ? "b" : "a"));
      expect(changed).not.toBe(row.data);
      db.prepare("UPDATE events SET data = ? WHERE sequence = ?").run(changed, row.sequence);
      return row.sequence;
    } finally {
      db.close();
    }
  }

  test("is named by verify with its first bad record, exit code 5, and by everything that reads it", async () => {
    const sequence = flip("early", "type = 'trial.ended' ORDER BY sequence LIMIT 1");
    const text = await trialist(lab, ["verify", "early"]);
    expect([text.code, text.stdout]).toEqual([5, expect.stringMatching(new RegExp(`^early: .*expected event ${sequence} to follow`))]);
    const reports = await document<readonly unknown[]>(lab, ["verify", "early"], { code: 5 });
    expect(reports).toEqual([expect.objectContaining({ run: "early", ok: false, problem: expect.stringContaining(`event ${sequence} `) })]);
    const out = join(lab.folder, "early.jsonl");
    const others = await inPairs(
      [
        ["report", "early"],
        ["export", "early", "--out", out],
      ],
      (words) => trialist(lab, words),
    );
    expect(others.map(({ code, stderr }: Ended) => [code, stderr])).toEqual(
      Array(2).fill([5, expect.stringContaining(`expected event ${sequence} to follow`)]),
    );
    expect(existsSync(out)).toBe(false);
  });

  test("stops at the door when its last record is bad, and hides no other run", async () => {
    const sequence = flip("last", "sequence = (SELECT max(sequence) FROM events)");
    const opened = await inPairs(
      [
        ["status", "last"],
        ["resume", "last"],
      ],
      (words) => trialist(lab, words),
    );
    expect(opened.map(({ code, stderr }: Ended) => [code, stderr])).toEqual(
      Array(2).fill([5, expect.stringContaining(`event ${sequence} `)]),
    );
    const all = await document<readonly { run: string; ok: boolean; problem: string }[]>(lab, ["verify", "--all"], { code: 5 });
    expect(all.map(({ run, ok }) => [run, ok])).toEqual([
      ["early", false],
      ["garbage", false],
      ["good", true],
      ["last", false],
    ]);
    expect(all[1]?.problem).toContain("expected a SQLite database");
    const listed = await document<readonly { run: string; state: string }[]>(lab, ["list"], { code: 5 });
    expect(listed.map(({ run, state }) => [run, state])).toEqual([
      ["early", "finished"],
      ["garbage", "unreadable"],
      ["good", "finished"],
      ["last", "unreadable"],
    ]);
    expect(await said(lab, ["verify", "good"])).toMatch(/^good: \d+ events and \d+ blobs check out/);
  });

  test("is not imported when its export was cut or altered, and leaves nothing behind", async () => {
    const before = readdirSync(join(lab.project, ".trialist/runs"));
    const tried = await inPairs(["cut", "altered"], (file) =>
      trialist(lab, ["import", join(lab.folder, `${file}.jsonl`), "--name", "new"]),
    );
    expect(tried.map(({ code }) => code)).toEqual([5, 5]);
    expect(tried[0]?.stderr).toMatch(/cut\.jsonl, line \d+: expected .*nothing was imported/s);
    expect(tried[1]?.stderr).toMatch(/altered\.jsonl, line \d+: expected event \d+ to follow.*altered, dropped or reordered/s);
    expect(readdirSync(join(lab.project, ".trialist/runs"))).toEqual(before);
  });
});

describe("--sandbox none", () => {
  const lab = new Lab();
  afterAll(() => lab.remove());

  test("is loud, and leaves its mark on everything", async () => {
    lab.write(numberPack({ seed, words: [proposes(scoring(300)), proposes({ "main.sh": "exit 3\n" })], rule: "any" }));
    // Candidates run as this user's own processes, in folders that only it may enter.
    chmodSync(lab.project, 0o700);
    const run = await trialist(lab, starts(lab, "open", "--max-trials", "2", "--sandbox", "none", "--json"));
    expect(run.code).toBe(0);
    expect(run.stderr).toMatch(/WARNING: --sandbox none\. Candidates run with your rights/);
    expect(JSON.parse(run.stdout)).toMatchObject({ sandbox: "none", best: { trial: "t1" } });

    const [status, shown, report] = await Promise.all([
      document<{ sandbox: string }>(lab, ["status", "open"]),
      said(lab, ["status", "open"]),
      document<{ folder: string }>(lab, ["report", "open"]),
    ]);
    expect(status.sandbox).toBe("none");
    expect(shown).toMatch(/WARNING.*sandbox/is);
    const file = (name: string): string => readFileSync(join(report.folder, name), "utf8");
    expect(file("report.md")).toMatch(/measurements? under sandbox NONE, NETWORK NOT OFF/);
    expect(file("report.md").split("\n").slice(0, 12).join("\n")).toMatch(/\*\*Warning:.*sandbox/i);
    expect(file("LEADERBOARD.md")).toMatch(/without a sandbox/);
    expect(JSON.parse(file("best.json"))).toMatchObject({ sandbox: "none" });
    expect(rowsOf(file("results.tsv")).rows.map(({ exp_id, sandbox }) => [exp_id, sandbox])).toEqual([
      ["t1", "none"],
      ["t2", "none"],
    ]);
  });
});
