import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { createRun } from "../../src/app/create-run.js";
import { openHost } from "../../src/app/environments.js";
import { inspectRun } from "../../src/app/inspect.js";
import { ownRun } from "../../src/app/own-run.js";
import { Project } from "../../src/app/project.js";

const place = mkdtempSync(join(tmpdir(), "trialist-layout-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

const files: Record<string, string> = {
  "environment.yaml": `schema: trialist/environment@1
name: layout
description: "notes is a folder of the environment; a candidate may write a file of that name"
surface: { editable: ["train.sh", "notes", "words.txt/more"] }
baseline: .
stages:
  - { name: train, run: sh train.sh, outputs: ["score"], limits: { wall: 20 s } }
  - { name: measure, trust: evaluator, run: sh measure.sh, purpose: in-loop }
metrics:
  - { name: score, direction: maximize }
noise: { calibrate: 2, remeasure_every: 0 }
promotion: { rule: any }
`,
  "train.sh": 'cat notes/start words.txt > /dev/null && echo 1 > "$TRIALIST_OUTPUT/score"\n',
  "notes/start": "a note that candidates may read\n",
  "words.txt": "words that candidates may read\n",
  "measure.sh": `printf '{"metrics":{"score":%s}}' "$(cat "$TRIALIST_ARTIFACTS/score")" > "$TRIALIST_MEASUREMENT"\n`,
  "propose.py": `import json, sys
asked = json.load(sys.stdin)
path = "notes" if asked["view"]["trialsLeft"] % 2 else "words.txt/more"
print(json.dumps({"plan": {"hypothesis": path}, "files": {path: "seed %d" % asked["seed"]}}))
`,
};

it("a candidate whose file lies where the environment has a folder, or under a file of it, is inadmissible and the run goes on", async () => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(place, "pack", path, ".."), { recursive: true });
    writeFileSync(join(place, "pack", path), text);
  }
  const project = new Project(place);
  const host = await openHost();
  const name = await createRun(project, host, {
    environmentFolder: join(place, "pack"),
    name: "layout",
    organization: { name: "tree", configuration: { debugProbability: 0 } },
    researcher: "command:python3 propose.py",
    budget: { trials: 2, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    promotion: {},
    seed: 1,
    parallel: 1,
    sandbox: "bubblewrap",
  });
  const owned = await ownRun(project, host, name, { frozen: false, progress: () => undefined });
  await owned.runner.work().finally(() => owned.close());
  const run = inspectRun(project, name);
  const [first, second] = ["t1", "t2"].map((id) => run.state.trials[id]);
  expect([first?.status, second?.status]).toEqual(["inadmissible", "inadmissible"]);
  const reasons = [first?.reason, second?.reason].join("\n");
  expect(reasons).toMatch(/notes: expected room for the candidate's file; found a folder of the environment/);
  expect(reasons).toMatch(/words\.txt\/more: expected room for the candidate's file; found a file of the environment/);
  expect(run.state.phase).toBe("finished");
  run.close();
});
