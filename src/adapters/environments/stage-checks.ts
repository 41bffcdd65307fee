import type { Checks } from "./checks.js";
import type { ContractForm } from "./contract.js";

type Stage = ContractForm["stages"][number];

export function checkStages(checks: Checks): void {
  for (const [index, stage] of checks.form.stages.entries()) {
    checkNameOfStage(checks, index, stage);
    if (stage.trust === "candidate") checkCandidateStage(checks, index, stage);
    else checkEvaluatorStage(checks, index, stage);
    checkTrustAndPurpose(checks, index, stage);
  }
  checkStagesTogether(checks);
}

function checkNameOfStage(checks: Checks, index: number, stage: Stage): void {
  const names = checks.form.stages.map((each) => each.name);
  if (names.indexOf(stage.name) !== index)
    checks.at(["stages", index, "name"], {
      what: `two stages are called \`${stage.name}\``,
      expected: "a name of its own for every stage",
      found: stage.name,
      todo: "rename one of the two",
    });
}

function checkEvaluatorStage(checks: Checks, index: number, stage: Stage): void {
  if (stage.outputs !== undefined && stage.outputs.length > 0)
    checks.at(["stages", index, "outputs"], {
      what: "an evaluator declares outputs",
      expected: "outputs of candidate stages alone; an evaluator writes $TRIALIST_MEASUREMENT",
      found: stage.outputs.join(", "),
      todo: "remove `outputs` here",
    });
  if ((stage.repeats ?? 1) > 1)
    checks.at(["stages", index, "repeats"], {
      what: "an evaluator is repeated",
      expected: "`repeats` on candidate stages alone",
      found: String(stage.repeats),
      todo: "remove `repeats` here",
    });
}

function checkCandidateStage(checks: Checks, index: number, stage: Stage): void {
  if (stage.purpose !== undefined)
    checks.at(["stages", index, "purpose"], {
      what: "a candidate's stage has a purpose",
      expected: "`purpose` on evaluators alone: a candidate measures nothing itself",
      found: stage.purpose,
      todo: "remove `purpose`, and say under `metrics` where each value comes from",
    });
}

function checkTrustAndPurpose(checks: Checks, index: number, stage: Stage): void {
  if (stage.trust === "held-out" ? (stage.purpose ?? "held-out") !== "held-out" : stage.purpose === "held-out")
    checks.at(["stages", index, "purpose"], {
      what: "trust and purpose do not go together",
      expected: "purpose held-out exactly where trust is held-out",
      found: `trust ${stage.trust}, purpose ${stage.purpose}`,
      todo: "change one of the two",
    });
}

/** What the stages make together: a candidate runs, and leaves something to be measured. */
function checkStagesTogether(checks: Checks): void {
  const { stages } = checks.form;
  const evaluated = stages.some((stage) => stage.trust !== "candidate");
  if (!stages.some((stage) => stage.trust === "candidate"))
    checks.at(["stages"], {
      what: "no stage runs the candidate",
      expected: "at least one stage with trust: candidate",
      found: stages.map((stage) => stage.name).join(", "),
      todo: "add { name: train, trust: candidate, run: …, outputs: […] }",
    });
  else if (evaluated && !stages.some((stage) => (stage.outputs ?? []).length > 0))
    checks.at(["stages"], {
      what: "the evaluator has nothing to read",
      expected: "a candidate stage that declares `outputs`",
      found: "no outputs",
      todo: "add `outputs: [FILE]` to the stage that writes it",
    });
}
