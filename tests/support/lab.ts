import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { drawsOf } from "../../src/core/harness/draw.js";

/** A project, a cache and an environment pack in one temporary folder, which the sandbox's user can pass through. */
export class Lab {
  readonly folder: string;
  readonly project: string;
  readonly pack: string;
  readonly cache: string;
  /** Programs see it as `/gate`: what a test puts there lets them go on. */
  readonly gate: string;

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "trialist-lab-"));
    chmodSync(this.folder, 0o755);
    this.project = join(this.folder, "project");
    this.pack = join(this.folder, "pack");
    this.cache = join(this.folder, "cache");
    this.gate = join(this.folder, "gate");
    for (const folder of [this.project, this.pack, this.cache, this.gate]) mkdirSync(folder);
  }

  /** What trialist sees of the environment of its process. */
  get variables(): Record<string, string> {
    return { PATH: process.env["PATH"] ?? "/usr/bin:/bin", TRIALIST_CACHE: this.cache };
  }

  write(files: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) {
      const target = join(this.pack, path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, text);
    }
  }

  /** Lets go on whatever waits at this gate. */
  open(gate: string): void {
    writeFileSync(join(this.gate, gate), "");
  }

  /** Names of scratch folders that still exist. */
  scratch(): string[] {
    const folder = join(this.cache, "scratch");
    return existsSync(folder) ? readdirSync(folder) : [];
  }

  /** What runs and has to do with this folder: by its command line, its working folder, what it has open or mounted. */
  processes(mention = this.folder): RunningProcess[] {
    return processesMentioning(mention);
  }

  /** Resolves with what still runs when it has become nothing, or when patience is over. */
  async leftovers(patienceMs = 15_000, mention = this.folder): Promise<RunningProcess[]> {
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(100)) {
      if (processesMentioning(mention).length === 0) return [];
    }
    return processesMentioning(mention);
  }

  /** Ends what a failed test left running in this folder, then removes it. */
  remove(): void {
    for (const { pid } of this.processes()) read(() => String(process.kill(pid, "SIGKILL")));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface RunningProcess {
  readonly pid: number;
  readonly command: string;
}

function processesMentioning(text: string): RunningProcess[] {
  const found: RunningProcess[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    if (Number(pid) === process.pid) continue;
    const command = read(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " "));
    if (command === "") continue;
    const places = [
      command,
      read(() => readlinkSync(`/proc/${pid}/cwd`)),
      read(() => readFileSync(`/proc/${pid}/mountinfo`, "utf8")),
      ...openFiles(pid),
    ];
    if (places.some((place) => place.includes(text))) found.push({ pid: Number(pid), command: command.slice(0, 300) });
  }
  return found;
}

function openFiles(pid: string): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirOf(folder).map((name) => read(() => readlinkSync(`${folder}/${name}`)));
}

function readdirOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(how: () => string): string {
  try {
    return how();
  } catch {
    return "";
  }
}

/** A researcher's words for one call: for every round, or by round. */
export type Words = string | Readonly<Record<number, string>>;

/** The seed that a run of this seed gives its n-th call: what a scripted researcher knows its calls by. */
export function callSeed(runSeed: number, call: number): number {
  return drawsOf(runSeed).seed("call", call);
}

/** Shell text that prints a proposal. */
export function proposes(files: Readonly<Record<string, string | null>>, hypothesis = "as the test has it"): string {
  return prints(JSON.stringify({ plan: { hypothesis }, files }));
}

/** Shell text that prints a text. */
export function prints(text: string): string {
  return `cat <<'TRIALIST-END'\n${text}\nTRIALIST-END\n`;
}

/** Files of a researcher that answers its calls by a script, with what it was asked in $DOCUMENT: `command:sh answer.sh`. */
export function scriptedResearcher(runSeed: number, words: readonly Words[]): Record<string, string> {
  const files: Record<string, string> = {
    "answer.sh": [
      `DOCUMENT=$(cat)`,
      "export DOCUMENT",
      `round=$(printf '%s' "$DOCUMENT" | sed -n 's/.*"role":"[a-z]*","round":\\([0-9]*\\),.*/\\1/p')`,
      `for file in answers/$TRIALIST_SEED.$round answers/$TRIALIST_SEED; do [ -f $file ] && exec sh $file; done`,
      `echo "nobody wrote an answer for seed $TRIALIST_SEED" >&2`,
      "exit 9",
      "",
    ].join("\n"),
  };
  words.forEach((each, index) => {
    const seed = callSeed(runSeed, index + 1);
    if (typeof each === "string") files[`answers/${seed}`] = each;
    else for (const [round, text] of Object.entries(each)) files[`answers/${seed}.${round}`] = text;
  });
  return files;
}

/** Candidate that prints this number plus a little that depends on the seed alone. */
export function scoring(value: number): Record<string, string> {
  return { "main.sh": `echo $((${value} + TRIALIST_SEED % 97)) > $TRIALIST_OUTPUT/out.txt\n` };
}

/** Candidate that waits at a gate before it prints its number. */
export function waiting(gate: string, value: number): Record<string, string> {
  return { "main.sh": `until [ -e /gate/${gate} ]; do sleep 0.1; done; ${scoring(value)["main.sh"]}` };
}

export interface NumberPack {
  readonly seed: number;
  readonly words: readonly Words[];
  /** Wall limit of the candidate's stage, as YAML has it. */
  readonly wall?: string;
  readonly calibrate?: number;
  readonly rule?: "any" | "confirmed";
  /** The lab's gate, for candidates that wait at it. */
  readonly gate?: string;
}

/** A pack whose candidates print a number, and whose researcher says what the test wants. */
export function numberPack({ seed, words, wall = "20 s", calibrate = 2, rule = "confirmed", gate }: NumberPack): Record<string, string> {
  return {
    "environment.yaml": `schema: trialist/environment@1
name: number
description: "print a number"
surface: { editable: ["main.sh"] }
baseline: baseline/
stages:
  - { name: train, run: sh main.sh, outputs: [out.txt], limits: { wall: ${wall} } }
  - { name: measure, trust: evaluator, run: sh evaluate.sh }
metrics: [{ name: score, direction: maximize }]
noise: { calibrate: ${calibrate}, remeasure_every: 0 }
promotion: { rule: ${rule}, confirmations: 2 }
${gate === undefined ? "" : `mounts: [{ source: ${gate}, target: /gate, digest: none }]\n`}`,
    "evaluate.sh": `printf '{"metrics":{"score":%s}}' "$(cat $TRIALIST_ARTIFACTS/out.txt)" > $TRIALIST_MEASUREMENT\n`,
    "baseline/main.sh": scoring(100)["main.sh"] ?? "",
    ...scriptedResearcher(seed, words),
  };
}
