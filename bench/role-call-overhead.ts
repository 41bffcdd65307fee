import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openSqliteLedger } from "../src/adapters/ledger/sqlite-ledger.js";
import { exchangesOf } from "../src/adapters/researchers/model/traffic.js";
import type { OpenCall } from "../src/core/harness/state.js";
import type { Researcher, RoleRequest } from "../src/core/ports/researcher.js";
import { performRoleCall, roleRequest } from "../src/research/runner/role-call.js";
import { Run } from "../src/research/runner/run.js";
import { diskFolder } from "./ledger-events.js";
import { LocalModelServer, modelConfiguration, modelResearchers } from "./model-world.js";
import { type BenchResult, figure, judged, median, ms } from "./result.js";
import { storeBaseline } from "./scripted-world.js";
import { Simulation } from "./simulated-trials.js";

const turns = 300;
const warmUp = 30;
/** Age of the run at the first question, so that its prompts hold a memory. */
const trialsBefore = 50;
const bar = 5;

/**
 * What a role call takes beyond its bare HTTP call: `fetch` with the same body at the same server, which is a process of its
 * own, the reply read as text. `role-call-researcher` is our researcher alone: prompt, provider's code, record, bill.
 * `role-call-runner` is all of it: the question made of the ledger, the researcher, the answer read, blobs and events
 * durable on disk. One of each a turn, in an order that goes round.
 */
export async function roleCallOverhead(): Promise<BenchResult[]> {
  const folder = mkdtempSync(join(diskFolder(), "bench-role-call-"));
  const server = await LocalModelServer.start();
  const ledger = openSqliteLedger(join(folder, "run"), { mode: "create", blobFolder: join(folder, "blobs") });
  try {
    const asker = new Asker(Run.open(ledger, Date.now), server.baseUrl);
    for (let turn = 0; turn < warmUp; turn++) await asker.turn(turn);
    const taken: Turn[] = [];
    for (let turn = 0; turn < turns; turn++) taken.push(await asker.turn(turn));
    return [
      row("role-call-researcher", "researcher", taken, "prompt, provider's code, record of the traffic, bill"),
      row("role-call-runner", "runner", taken, "the same, the question made of the ledger, the answer read, its events durable on disk"),
    ];
  } finally {
    ledger.close();
    server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Way = "bare" | "researcher" | "runner";
/** Milliseconds of each way, and bytes of the question. */
type Turn = Readonly<Record<Way, number>> & { readonly bytes: number };

function row(name: string, way: "researcher" | "runner", taken: readonly Turn[], what: string): BenchResult {
  const of = (pick: (turn: Turn) => number): number => median(taken.map(pick));
  return judged(
    {
      name,
      value: of((turn) => turn[way] - turn.bare),
      unit: "ms over the bare HTTP call",
      ours: ms(of((turn) => turn[way])),
      limit: ms(of((turn) => turn.bare)),
      note: `${what}; medians of ${taken.length} calls in turns, questions of ${figure(of((turn) => turn.bytes / 1024))} KiB`,
    },
    { atMost: bar },
    "more than half of what the runner adds is one durable transaction of the answer, its files and its traffic, which waits for the disk",
  );
}

const never = new AbortController().signal;

/** Puts one question of a run in all three ways. */
class Asker {
  private readonly simulation: Simulation;
  private readonly researchers: ReadonlyMap<string, Researcher>;

  constructor(
    private readonly run: Run,
    private readonly baseUrl: string,
  ) {
    const configuration = modelConfiguration(baseUrl);
    run.dispatch({ type: "start", configuration, baseline: storeBaseline(run), references: [], queue: [] });
    run.dispatch({ type: "open_span", epoch: 1, previousEndedAt: null, drives: true });
    this.researchers = modelResearchers(configuration);
    this.simulation = new Simulation(run);
    this.simulation.search(trialsBefore);
  }

  async turn(number: number): Promise<Turn> {
    const { call, round } = this.simulation.nextCall();
    const open = this.run.state.calls[call];
    if (open === undefined) throw new Error(`${call} is due and not open`);
    this.run.commit();
    const request = this.request(open, round);
    const body = await this.bodyOf(open, request);
    const ways: Record<Way, () => Promise<unknown>> = {
      bare: () => this.bare(body),
      researcher: () => this.researcherOf(open).answer(request, never),
      runner: () => this.runner(call, round),
    };
    const taken = { bare: 0, researcher: 0, runner: 0, bytes: Buffer.byteLength(body) };
    const order = Object.keys(ways) as Way[];
    for (let place = 0; place < order.length; place++) {
      const way = order[(place + number) % order.length] as Way;
      const begun = performance.now();
      await ways[way]();
      taken[way] = performance.now() - begun;
    }
    return taken;
  }

  private request(open: OpenCall, round: number): RoleRequest {
    const { run } = this;
    const blobs = { blob: (digest: string) => run.ledger.blob(digest), putBlob: (bytes: Uint8Array) => run.putBlob(bytes) };
    return roleRequest(run, open, round, blobs, (text) => text);
  }

  private researcherOf({ researcher }: OpenCall): Researcher {
    const found = this.researchers.get(researcher);
    if (found === undefined) throw new Error(`nobody is ${researcher}`);
    return found;
  }

  /** The very bytes that the researcher sends. */
  private async bodyOf(open: OpenCall, request: RoleRequest): Promise<string> {
    const { model } = await this.researcherOf(open).answer(request, never);
    const [exchange] = model === null ? [] : exchangesOf(model.traffic);
    if (exchange === undefined) throw new Error("the researcher made no request");
    return exchange.requestBody;
  }

  private async bare(body: string): Promise<void> {
    const response = await fetch(`${this.baseUrl}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    await response.text();
    if (!response.ok) throw new Error(`the model's server answers ${response.status}`);
  }

  private async runner(call: string, round: number): Promise<void> {
    const { run, researchers } = this;
    const host = {
      run,
      researchers,
      redact: (text: string) => text,
      wanted: () => true,
      take: (command: Parameters<Run["take"]>[0]) => run.take(command),
    };
    await performRoleCall(host, call, round, never);
    run.commit();
  }
}
