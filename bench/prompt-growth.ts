import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openSqliteLedger } from "../src/adapters/ledger/sqlite-ledger.js";
import { configurationOf, type OpenCall } from "../src/core/harness/state.js";
import { viewBuilders } from "../src/core/harness/views.js";
import { roleNamed } from "../src/research/roles/registry.js";
import { Run } from "../src/research/runner/run.js";
import { diskFolder } from "./ledger-events.js";
import { type BenchResult, figure, judged, median, ms, secondsOf } from "./result.js";
import { answerFor } from "./scripted-world.js";
import { Simulation, simulateRun } from "./simulated-trials.js";

const young = 50;
const old = 5000;
const questions = 30;
const buildsPerQuestion = 20;
const bar = 1.2;

/**
 * The prompt of a call at trial 5,000 over that at trial 50: its bytes, and the time from the run's state to its words
 * (view, document with the contents filled in from the ledger on disk, prompt). Two runs side by side, in turns; `improve`
 * alone is counted, since a repair holds an output that the others have not.
 */
export async function promptGrowth(): Promise<BenchResult[]> {
  const folder = mkdtempSync(join(diskFolder(), "bench-prompt-"));
  const sides = [young, old].map((trials) => new Side(join(folder, `${trials}`), trials));
  try {
    const [first, second] = sides;
    if (first === undefined || second === undefined) throw new Error("two ages are compared");
    const pairs = Array.from({ length: questions }, () => ({ young: first.prompt(), old: second.prompt() }));
    const of = (pick: (pair: (typeof pairs)[number]) => number): number => median(pairs.map(pick));
    const kib = (bytes: number): string => `${figure(bytes / 1024)} KiB`;
    const note = `medians of ${questions} questions of each run in turns, each built ${buildsPerQuestion} times; hypotheses of about 200 characters, files of 4 KiB`;
    const rows = {
      bytes: { young: kib(of((pair) => pair.young.bytes)), old: kib(of((pair) => pair.old.bytes)) },
      ms: { young: ms(of((pair) => pair.young.ms)), old: ms(of((pair) => pair.old.ms)) },
    };
    return (["bytes", "ms"] as const).map((what) =>
      judged(
        {
          name: what === "bytes" ? "prompt-growth-bytes" : "prompt-growth-time",
          value: of((pair) => pair.old[what] / pair.young[what]),
          unit: `× the prompt of trial ${young}`,
          ours: `${rows[what].old} at trial ${old}`,
          limit: `${rows[what].young} at trial ${young}`,
          note,
        },
        { atMost: bar },
      ),
    );
  } finally {
    for (const side of sides) side.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Built {
  readonly bytes: number;
  readonly ms: number;
}

/** A run of some age. */
class Side {
  private readonly ledger: ReturnType<typeof openSqliteLedger>;
  private readonly run: Run;
  private readonly simulation: Simulation;

  constructor(folder: string, trials: number) {
    const place = { run: join(folder, "run"), blobs: join(folder, "blobs") };
    const made = openSqliteLedger(place.run, { mode: "create", blobFolder: place.blobs });
    simulateRun(made, trials, wordy);
    made.close();
    this.ledger = openSqliteLedger(place.run, { mode: "own", blobFolder: place.blobs });
    this.run = Run.open(this.ledger, Date.now);
    this.run.dispatch({ type: "open_span", epoch: this.run.state.epoch + 1, previousEndedAt: null, drives: true });
    this.simulation = new Simulation(this.run, wordy);
  }

  /** The prompt of the next call that improves something. */
  prompt(): Built {
    for (;;) {
      const { call } = this.simulation.nextCall();
      const open = this.run.state.calls[call];
      if (open === undefined) throw new Error(`${call} is due and not open`);
      this.run.commit();
      const built = open.role === "improve" ? this.built(open) : null;
      this.simulation.answer(call);
      if (built !== null) return built;
    }
  }

  private built(open: OpenCall): Built {
    let prompt = this.build(open);
    const times = Array.from(
      { length: buildsPerQuestion },
      () =>
        secondsOf(() => {
          prompt = this.build(open);
        }) * 1000,
    );
    const { system, user, answer } = prompt;
    return { bytes: Buffer.byteLength(system + user + JSON.stringify(answer.schema)), ms: median(times) };
  }

  private build({ role: name, base }: OpenCall): ReturnType<ReturnType<typeof roleNamed>["prompt"]> {
    const { run } = this;
    const role = roleNamed(name);
    const view = viewBuilders.proposal(run.state, name, base, run.now());
    const blobs = { blob: (digest: string) => run.ledger.blob(digest), putBlob: (bytes: Uint8Array) => run.putBlob(bytes) };
    return role.prompt(role.document(view, configurationOf(run.state).environment, blobs));
  }

  close(): void {
    this.ledger.close();
  }
}

/** The world's answers with a hypothesis as models write it. */
function wordy(number: number): Uint8Array {
  const answer = JSON.parse(new TextDecoder().decode(answerFor(number))) as { plan: { hypothesis: string } };
  const { hypothesis } = answer.plan;
  const reason = " The residuals of trial before it grow with the size of the group, which a weight would correct.";
  return new TextEncoder().encode(JSON.stringify({ ...answer, plan: { ...answer.plan, hypothesis: hypothesis + reason } }));
}
