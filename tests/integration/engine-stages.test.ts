import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { createRun } from "../../src/app/create-run.js";
import { openHost } from "../../src/app/environments.js";
import { heldoutLook } from "../../src/app/heldout.js";
import { inspectRun } from "../../src/app/inspect.js";
import { ownRun } from "../../src/app/own-run.js";
import { Project } from "../../src/app/project.js";

const place = mkdtempSync(join(tmpdir(), "trialist-stages-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

const contract = `schema: trialist/environment@1
name: checkpoints
description: "train writes three checkpoints, select picks one, measure scores it"
surface: { editable: ["train.sh"] }
baseline: baseline
keep_outputs: all
stages:
  - { name: train, run: sh train.sh, outputs: ["checkpoints/**"], repeats: 1, limits: { wall: 20 s } }
  - { name: select, trust: evaluator, run: sh select.sh, purpose: online }
  - { name: measure, trust: evaluator, run: sh measure.sh, purpose: in-loop }
  - { name: unseen, trust: held-out, run: sh measure.sh, purpose: held-out }
metrics:
  - { name: score, direction: maximize }
  - { name: seconds, direction: minimize, from: { wall: train } }
noise: { calibrate: 2, remeasure_every: 1 }
promotion: { rule: any }
`;

const files: Record<string, string> = {
  "environment.yaml": contract,
  "baseline/train.sh":
    'mkdir -p "$TRIALIST_OUTPUT/checkpoints"; for n in 1 2 3; do echo $((n * (4 - n))) > "$TRIALIST_OUTPUT/checkpoints/$n.txt"; done\n',
  "select.sh": `best=; top=0
for f in "$TRIALIST_ARTIFACTS"/checkpoints/*; do v=$(cat "$f"); if [ "$v" -gt "$top" ]; then top=$v; best=checkpoints/$(basename "$f"); fi; done
printf '{"metrics":{"online":%s},"selected":"%s"}' "$top" "$best" > "$TRIALIST_MEASUREMENT"
`,
  "measure.sh": `printf '{"metrics":{"score":%s}}' "$(cat "$TRIALIST_SELECTED")" > "$TRIALIST_MEASUREMENT"\n`,
  "propose.sh": `cat > /dev/null; printf '{"plan":{"hypothesis":"nothing"},"files":{"train.sh":"mkdir -p $TRIALIST_OUTPUT/checkpoints; echo 9 > $TRIALIST_OUTPUT/checkpoints/1.txt; : %s\\\\n"}}' "$TRIALIST_SEED"\n`,
};

it("an online stage chooses the checkpoint that the in-loop stage measures, and its values decide nothing", async () => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(place, "pack", path, ".."), { recursive: true });
    writeFileSync(join(place, "pack", path), text);
  }
  const project = new Project(place);
  const host = await openHost();
  const name = await createRun(project, host, {
    environmentFolder: join(place, "pack"),
    name: "stages",
    organization: { name: "tree", configuration: {} },
    researcher: "command:sh propose.sh",
    budget: { trials: 2, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    promotion: {},
    seed: 1,
    parallel: 1,
    sandbox: "bubblewrap",
  });
  const owned = await ownRun(project, host, name, { frozen: false, progress: () => undefined });
  await owned.runner.work().finally(() => owned.close());
  const run = inspectRun(project, name);
  const measured = [...run.ledger.read()].flatMap((event) => {
    const { result } = event.data as {
      result?: {
        kind: string;
        measured: { online: unknown; values: Record<string, number>; wallSeconds: Record<string, number[]> };
        outputs: { path: string }[];
      };
    };
    return event.type === "attempt.ended" && result?.kind === "measured" ? [result] : [];
  });
  expect(measured[0]?.measured.online).toEqual({ selected: "checkpoints/2.txt", values: { online: 4 } });
  expect(measured[0]?.measured.values.score).toBe(4);
  expect(measured[0]?.measured.values.seconds).toBeGreaterThan(0);
  expect(measured[0]?.measured.wallSeconds.seconds).toHaveLength(1);
  expect(measured[0]?.outputs.map((output) => output.path)).toEqual(["checkpoints/1.txt", "checkpoints/2.txt", "checkpoints/3.txt"]);
  expect(run.state.leader?.values.score).toBe(9);
  // The interleaved baseline was measured again, without a trial of its own.
  expect(run.state.remeasurements.length).toBeGreaterThan(0);
  expect(run.state.budget.spent.trials).toBe(2);
  // A held-out look goes by the same choice of checkpoint.
  const look = await heldoutLook(host, run, "t0", "a test", () => undefined);
  expect([look.failure, look.heldout?.["score"]]).toEqual([null, 4]);
  run.close();
});
