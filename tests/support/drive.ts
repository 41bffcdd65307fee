import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { builtSources } from "./built-sources.js";
import type { Lab } from "./lab.js";
import type { Job, Report, Step } from "./run-driver.js";

/** A process that works on runs of a lab. */
export interface Driven {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly reports: readonly Report[];
  readonly stdout: string;
  readonly stderr: string;
}

/** What a driver is told beside its steps. `through`: a program that starts it, with its words, such as a tracer. */
export type Circumstances = Partial<Pick<Job, "clock" | "fullFrom" | "fullWhile" | "variables" | "deviceRoot">> & {
  readonly through?: readonly string[];
};

/** Starts a process that takes the steps one after the other. */
export function drive(lab: Lab, steps: readonly Step[], { through = [], ...more }: Circumstances = {}): Driven {
  const driver = join(builtSources(), "tests", "support", "run-driver.js");
  const job: Job = { project: lab.project, environment: lab.pack, variables: lab.variables, steps, ...more };
  const [program = process.execPath, ...words] = [...through, process.execPath, driver, JSON.stringify(job)];
  return spawned(program, words, lab);
}

/** The command line, as a user starts it. */
export function commandLine(lab: Lab, ...words: string[]): Driven {
  return commandLineWith(lab, {}, ...words);
}

/** The command line with more in its environment. */
export function commandLineWith(lab: Lab, variables: Readonly<Record<string, string>>, ...words: string[]): Driven {
  return spawned(process.execPath, [join(builtSources(), "src", "interfaces", "cli", "main.js"), ...words], lab, variables);
}

function spawned(program: string, words: readonly string[], lab: Lab, variables: Readonly<Record<string, string>> = {}): Driven {
  const child = spawn(program, words, { cwd: lab.project, env: { ...lab.variables, ...variables }, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr, reports: reportsIn(stdout) }));
  });
  return { child, ended };
}

function reportsIn(stdout: string): Report[] {
  const lines = stdout.split("\n").filter((line) => line.startsWith('{"name":'));
  return lines.map((line) => JSON.parse(line) as Report);
}

/** Takes the steps and must come to their end. @throws Error with what the process said */
export async function driven(lab: Lab, steps: readonly Step[], more: Circumstances = {}): Promise<readonly Report[]> {
  const { code, signal, stderr, reports } = await drive(lab, steps, more).ended;
  if (code !== 0) throw new Error(`the driver ended with ${signal ?? `code ${code}`}: ${stderr}`);
  return reports;
}
