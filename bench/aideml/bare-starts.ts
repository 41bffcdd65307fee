import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bubblewrapArguments } from "../../src/adapters/sandbox/bubblewrap.js";
import { giveToSandbox } from "../../src/adapters/sandbox/identity.js";
import { assertUsable, probeSandbox } from "../../src/adapters/sandbox/probe.js";
import { median } from "../result.js";
import { bareSandbox, trivialStage } from "../sandbox-start.js";
import { playbookCommand, writeTrivialEnvironment } from "./trivial-environment.js";

const rounds = 60;
const packInside = "/trialist/pack";

/** What bubblewrap alone takes, from start to end, in ms. */
export interface BareStarts {
  readonly ofNothing: number;
  /** Of the playbook's command. */
  readonly ofAnswer: number;
}

/** Medians of starts in turns, without trialist. */
export async function bareStarts(parent: string): Promise<BareStarts> {
  const report = await probeSandbox();
  assertUsable(report);
  const [workspace, pack] = ["workspace-", "pack-"].map((name) => mkdtempSync(join(parent, name))) as [string, string];
  await giveToSandbox(workspace);
  writeTrivialEnvironment(pack);
  const nothing = trivialStage("bare", workspace);
  const mount = { source: pack, target: packInside, mode: "read-only" } as const;
  const answer = { ...nothing, command: playbookCommand, workingDirectory: packInside, mounts: [mount], writableFolders: [] };
  const turns: { readonly nothing: number; readonly answer: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const of = (stage: typeof nothing): Promise<number> => bareSandbox(bubblewrapArguments(stage, report.features));
    turns.push({ nothing: await of(nothing), answer: await of(answer) });
  }
  for (const folder of [workspace, pack]) rmSync(folder, { recursive: true, force: true });
  return { ofNothing: median(turns.map((turn) => turn.nothing)), ofAnswer: median(turns.map((turn) => turn.answer)) };
}
