import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installAideml } from "./install.js";
import type { Side, TimedStep } from "./steps.js";
import { type StubServer, stubModel } from "./stub-server.js";
import { watch } from "./watched-process.js";

const driver = fileURLToPath(new URL("./run_aideml.py", import.meta.url));
const mark = "STEP ";

interface DriverLine {
  readonly begun: number;
  readonly ended: number;
  readonly scriptMs: number;
  readonly processMs: number;
  readonly isBuggy: boolean;
}

/** The command `aide`, or the loop of the library, which makes no tree of solutions for the eye. */
export type AidemlWay = "command" | "library";

/** aideml in a fresh folder, home and all: its agent, its interpreter and its saving, step by step. */
export async function runAideml(parent: string, server: StubServer, steps: number, way: AidemlWay): Promise<Side> {
  const python = await installAideml();
  const folder = join(parent, `aideml-${way}`);
  const data = join(folder, "data");
  mkdirSync(data, { recursive: true });
  const seen = server.requests.length;
  const { stdout, written } = await watch({
    program: python,
    words: [driver, way, String(steps), data, stubModel],
    folder,
    variables: {
      PATH: process.env["PATH"] ?? "/usr/bin:/bin",
      HOME: folder,
      OPENAI_BASE_URL: server.baseUrl,
      OPENAI_API_KEY: "none",
      PYTHONDONTWRITEBYTECODE: "1",
    },
    limitMs: 120_000 + steps * 2000,
  });
  const lines = stdout.split("\n").filter((line) => line.startsWith(mark));
  const timed = lines.map((line) => stepOf(JSON.parse(line.slice(mark.length)) as DriverLine));
  if (timed.length !== steps) throw new Error(`aideml made ${timed.length} of ${steps} steps`);
  return { steps: timed, requests: server.requests.slice(seen), written };
}

function stepOf({ begun, ended, scriptMs, processMs, isBuggy }: DriverLine): TimedStep {
  if (isBuggy) throw new Error("aideml took a step for buggy: the stub's answers do not suit it");
  return { begun, ended, scriptMs, startMs: processMs };
}
