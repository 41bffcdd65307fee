import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openSqliteLedger } from "../src/adapters/ledger/sqlite-ledger.js";
import { Project } from "../src/app/project.js";
import { type ReplayReport, replayRecorded } from "../src/app/replay.js";
import { performRoleCall } from "../src/research/runner/role-call.js";
import { Run } from "../src/research/runner/run.js";
import { diskFolder } from "./ledger-events.js";
import { LocalModelServer, modelConfiguration, modelResearchers, noSecrets } from "./model-world.js";
import { type BenchResult, judged, median, ms } from "./result.js";
import { storeBaseline } from "./scripted-world.js";
import { Simulation } from "./simulated-trials.js";

const calls = 1000;
const rounds = 3;
const bar = 200;
const name = "recorded";

/**
 * Replay of a run of 1,000 calls of a language model, as `trialist replay` does it: every decision is made again, and every
 * answer got again from its recorded traffic, with a prompt built anew. The run was recorded over HTTP; its stages and
 * measurements are those of the scripted world.
 */
export async function replayRate(): Promise<BenchResult[]> {
  const folder = mkdtempSync(join(diskFolder(), "bench-replay-"));
  try {
    const project = new Project(folder);
    project.make();
    const recordedMs = await record(project);
    const taken: number[] = [];
    let report = await replayed(project);
    for (let round = 0; round < rounds; round++) {
      const begun = performance.now();
      report = await replayed(project);
      taken.push(performance.now() - begun);
    }
    const perCall = median(taken) / calls;
    return [
      judged(
        {
          name: "replay-rate",
          value: 1000 / perCall,
          unit: "calls a second",
          ours: `${ms(perCall)} a call`,
          limit: `${ms(recordedMs / calls)} a call when it was recorded`,
          note: `${report.reanswered} answers got again from the traffic, ${report.events} events, ${report.decided} decisions; median of ${rounds} replays after one that is not counted`,
        },
        { atLeast: bar },
      ),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function replayed(project: Project): Promise<ReplayReport> {
  const report = await replayRecorded(project, name, null, noSecrets);
  const { difference, reanswered, chain } = report;
  if (difference !== null) throw new Error(`the replay differs at event ${difference.sequence}: ${difference.message}`);
  if (reanswered !== calls || chain.recorded !== chain.replayed) throw new Error(`${reanswered} of ${calls} answers were got again`);
  return report;
}

/** In ms. */
async function record(project: Project): Promise<number> {
  const server = await LocalModelServer.start();
  const ledger = openSqliteLedger(project.runFolder(name), { mode: "create", blobFolder: project.blobFolder });
  try {
    const run = Run.open(ledger, Date.now);
    const configuration = modelConfiguration(server.baseUrl, { run: name });
    run.dispatch({ type: "start", configuration, baseline: storeBaseline(run), references: [], queue: [] });
    run.dispatch({ type: "open_span", epoch: 1, previousEndedAt: null, drives: true });
    const simulation = new Simulation(run);
    const host = {
      run,
      researchers: modelResearchers(configuration),
      redact: noSecrets.redact,
      wanted: () => true,
      take: (command: Parameters<Run["take"]>[0]) => run.take(command),
    };
    const begun = performance.now();
    for (let asked = 0; asked < calls; asked++) {
      const { call, round } = simulation.nextCall();
      await performRoleCall(host, call, round, new AbortController().signal);
      run.commit();
    }
    return performance.now() - begun;
  } finally {
    ledger.close();
    server.stop();
  }
}
