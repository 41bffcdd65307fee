import { spawnSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { commandLine } from "../support/drive.js";
import { Lab, proposes, scriptedResearcher } from "../support/lab.js";

/** Downloads that real programs try inside the real sandbox, and what the operator is told of them. */
const seed = 3;
const hint = /sandbox has none: name the data under `mounts` or `data` in environment\.yaml/;
let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

const works = "echo 'score: 1'\n";

function pack(baseline: string, words: readonly string[], more = ""): void {
  lab.write({
    "environment.yaml": `schema: trialist/environment@1
name: download
surface: { editable: ["main.sh"] }
stages: [{ name: train, run: sh main.sh, limits: { wall: 60 s } }]
metrics: [{ name: score, direction: maximize, from: { stdout: "score: (\\\\d+)" } }]
noise: { calibrate: 2 }
promotion: { rule: any }
${more}`,
    "baseline/main.sh": baseline,
    ...scriptedResearcher(seed, words),
  });
}

function run(trials: number) {
  const flags = ["--researcher", "command:sh answer.sh", "--seed", String(seed), "--drafts", "50", "--name", "run"];
  return commandLine(lab, "run", lab.pack, ...flags, "--max-trials", String(trials)).ended;
}

async function said(...words: string[]): Promise<string> {
  // Lines are wrapped for people.
  return (await commandLine(lab, ...words).ended).stdout.replaceAll(/\s+/g, " ");
}

const programs: readonly [name: string, script: string][] = [
  ["python3", `python3 -c "import urllib.request as u; u.urlopen('https://example.org/data.csv')"\n`],
  ["curl", "curl -sSf https://example.org/data.csv -o data.csv\n"],
  ["wget", "wget https://example.org/data.csv\n"],
  ["git", "git clone https://example.org/data.git\n"],
  ["node", `node -e "fetch('https://example.org/data.csv').catch((error) => { throw error })"\n`],
  ["bash", "bash -c 'exec 3<>/dev/tcp/example.org/80'\n"],
];
/** What the sandbox can see of them: what lies below /usr. */
const installed = programs.filter(([name]) => spawnSync("env", ["-i", "PATH=/usr/local/bin:/usr/bin:/bin", "which", name]).status === 0);

describe("a candidate that downloads", () => {
  it("is pointed to mounts and data, whatever it downloads with", { timeout: 180_000 }, async () => {
    expect(installed.length).toBeGreaterThan(1);
    const failing = installed.map(([, script]) => proposes({ "main.sh": `${script.trim()} || exit 3\n${works.replace("1", "2")}` }));
    pack(works, [...failing, proposes({ "main.sh": "exit 5\n" })]);
    const { code, stderr } = await run(installed.length + 1);
    expect(code).toBe(0);
    // Once, with the first of them: a search that keeps failing so does not need it a hundred times.
    expect(stderr.match(new RegExp(hint, "g"))).toHaveLength(1);
    for (const [index, [name]] of installed.entries())
      expect([name, await said("show", "run", `t${index + 1}`)]).toEqual([name, expect.stringMatching(hint)]);
    expect(await said("show", "run", `t${installed.length + 1}`)).not.toMatch(hint);
    expect(await said("status", "run")).toMatch(new RegExp(`Hint t\\d: its output speaks of a network, .*${hint.source}`));
    expect(JSON.parse((await commandLine(lab, "status", "run", "--json").ended).stdout)).toMatchObject({
      hint: expect.stringMatching(hint),
    });
    expect(await said("report", "run")).toMatch(/Hint: t\d: its output speaks of a network/);
  });
});

describe("a baseline that downloads", () => {
  it("is pointed there too, and its status is that of its exit code", async () => {
    pack(programs[0]?.[1] ?? "", []);
    const { code, stdout, stderr } = await run(1);
    expect(code).toBe(2);
    expect(stdout.replaceAll(/\s+/g, " ")).toMatch(
      /calibration failed: the baseline ended crashed in stage train.*Hint t0: its output speaks/,
    );
    expect(stderr).toMatch(hint);
  });

  it("is not, where it failed of something else", async () => {
    pack("echo 'Connection refused by 127.0.0.1' >&2\nexit 1\n", []);
    const { code, stdout, stderr } = await run(1);
    expect([code, stdout + stderr]).toEqual([2, expect.not.stringMatching(hint)]);
  });
});

describe("a preparation that downloads", () => {
  it("is pointed there by check", async () => {
    pack(works, [], "data: { prepare: prepare.py }\n");
    lab.write({ "prepare.py": "import urllib.request\nurllib.request.urlopen('https://example.org/data.csv')\n" });
    const { code, stderr } = await commandLine(lab, "check", lab.pack).ended;
    expect([code, stderr]).toEqual([3, expect.stringMatching(hint)]);
  });
});
