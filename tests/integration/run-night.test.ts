import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { parseEvent, type StoredRunEvent } from "../../src/core/protocol/events.js";
import { project as projected } from "../../src/core/protocol/projection.js";
import { commandLine } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, proposes, scriptedResearcher } from "../support/lab.js";

/** An engineer's own repository, a night, and a runner that is killed twice. */
const lab = new Lab();
const repository = join(lab.folder, "the repository");
afterAll(() => lab.remove());

const files = 20_000;
const seed = 17;

/** Reads a module and some of the many files; takes its time, so that there is something to kill; prints its number. */
const train = `import os, pathlib, sys, time
from settings import NAP, SCALE
here = pathlib.Path(__file__).parent
known = sum(len(path.read_text()) for path in (here.parent / "corpus" / "part 007").iterdir())
assert sys.prefix != sys.base_prefix, "not in the virtual environment"
time.sleep(NAP)
print(f"score: {SCALE * 10 + known / 1000 + int(os.environ['TRIALIST_SEED']) % 7 / 100}")
`;

const settings = (scale: number, nap: number): Record<string, string> => ({ "src/settings.py": `SCALE = ${scale}\nNAP = ${nap}\n` });

function makeRepository(): void {
  for (let part = 0; part < 200; part++) {
    const folder = join(repository, "corpus", `part ${String(part).padStart(3, "0")}`);
    mkdirSync(folder, { recursive: true });
    for (let file = 0; file < files / 200; file++) writeFileSync(join(folder, `größe-${file}.txt`), `text ${part} ${file}\n`);
  }
  mkdirSync(join(repository, "src"));
  writeFileSync(join(repository, "src", "train.py"), train);
  writeFileSync(join(repository, "src", "settings.py"), settings(1, 1)["src/settings.py"] ?? "");
  writeFileSync(join(repository, ".gitignore"), ".venv/\n");
  const answers = [settings(2, 0), settings(0, 0), settings(5, 4), settings(4, 0)].map((each, index) => proposes(each, `try ${index + 1}`));
  for (const [path, text] of Object.entries(scriptedResearcher(seed, answers))) {
    mkdirSync(join(repository, "answers"), { recursive: true });
    writeFileSync(join(repository, path), text);
  }
  execFileSync("python3", ["-m", "venv", "--without-pip", join(repository, ".venv")]);
  const git = (...words: string[]): unknown =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@localhost", ...words], { cwd: repository, stdio: "ignore" });
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message", "all of it");
  // Dirty in both ways: a tracked file changed, another one nobody has added.
  appendFileSync(join(repository, "src", "train.py"), "# not committed\n");
  writeFileSync(join(repository, "src", "untracked.py"), "LATER = True\n");
}

async function trialist(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await commandLine(lab, ...words, "-C", repository).ended;
  expect([code, stderr], words.join(" ")).toEqual([0, expect.anything()]);
  return stdout;
}

const start = [
  "--seed",
  String(seed),
  "--drafts",
  "200",
  "--researcher",
  "command:sh answer.sh",
  "--max-trials",
  "4",
  "--rule",
  "any",
  "--recalibrate",
];

function eventsOf(run: string): StoredRunEvent[] {
  const { ledger, close } = inspectRun(new Project(repository), run);
  const events = [...ledger.read()].map(parseEvent);
  close();
  return events;
}

describe("a night on one's own repository", () => {
  it("20,000 files, a virtual environment, a dirty tree: killed twice, it ends as the undisturbed run", { timeout: 300_000 }, async () => {
    makeRepository();
    const answers = ["--edit", "src/*.py", "--run", ".venv/bin/python src/train.py", "--metric", "score", "--direction", "maximize"];
    await trialist("init", "--yes", ...answers, repository);
    const contract = join(repository, "environment.yaml");
    expect(readFileSync(contract, "utf8")).toMatch(/use: .*\.venv/);
    const brief = readFileSync(contract, "utf8").replace(/^noise:.*$/m, "noise: { calibrate: 2, remeasure_every: 0 }");
    expect(brief).toContain("calibrate: 2");
    writeFileSync(contract, brief);

    await trialist("run", repository, "--name", "calm", ...start);
    let { pid } = JSON.parse(await trialist("run", repository, "--name", "night", "--detach", "--json", ...start)) as { pid: number };
    // In the first repetition of the calibration, and in the middle of the third trial.
    for (const started of [1, 5]) {
      await expect.poll(() => of(eventsOf("night"), "stage.started").length, { timeout: 60_000, interval: 100 }).toBe(started);
      process.kill(pid, "SIGKILL");
      ({ pid } = JSON.parse(await trialist("resume", "night", "--detach", "--json")) as { pid: number });
    }
    await trialist("attach", "night");
    const [calm, night] = [eventsOf("calm"), eventsOf("night")];
    expect(of(night, "run.span_opened").length).toBe(3);
    expect(projected(night)).toEqual(projected(calm));
    expect(of(night, "leader.changed").at(-1)?.data.trial).toBe("t3");
    const status = execFileSync("git", ["status", "--porcelain"], { cwd: repository, encoding: "utf8" });
    expect(status.split("\n").filter((line) => !/environment\.yaml|\.gitignore/.test(line))).toEqual([
      " M src/train.py",
      "?? src/untracked.py",
      "",
    ]);
    await trialist("verify", "--all");
  });
});
