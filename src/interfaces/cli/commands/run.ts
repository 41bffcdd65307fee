import { resolve } from "node:path";
import { createRun } from "../../../app/create-run.js";
import { openHost } from "../../../app/environments.js";
import { ownRun } from "../../../app/own-run.js";
import { Project } from "../../../app/project.js";
import type { BudgetLimits } from "../../../core/protocol/budget.js";
import { type CliCommand, type CommandInput, numberOption, positiveNumber, textOption, wholeNumber } from "../command.js";
import { driveRun } from "../drive.js";
import { durationOption } from "../duration.js";
import { finalAnswer } from "../final-answer.js";
import { describeOrganizationOptions, organizationConfiguration } from "../organization-options.js";
import { promotionRule } from "../promotion-options.js";
import { describeResearcherOptions, researcherChoice } from "../researcher-options.js";
import { UsageError } from "../usage-error.js";

const example = `
A researcher is one of the environment's playbooks (reference, random …), a language model, or command:LINE, a shell
command that runs in the frozen environment, reads one JSON document { role, seed, round, violations, view } on standard
input and writes { "plan": { "hypothesis": "…" }, "files": { "PATH": "new text" } } on standard output. A model is a name
in trialist.config.yaml or PROVIDER:MODEL; its key comes from the environment, such as ANTHROPIC_API_KEY.

Example:
  trialist run environments/flchain --max-trials 20 --parallel 2
  trialist run . --researcher anthropic:claude-sonnet-4-5 --max-cost 5
  trialist run . --researcher openai-compatible --model qwen3 --base-url http://127.0.0.1:11434/v1 --allow-unknown-price
  trialist run . --researcher 'command:python3 propose.py' --max-time 8h --name night`;

export const command: CliCommand = {
  describe(program) {
    program
      .argument("<environment>", "folder with an environment.yaml")
      .option("--name <name>", "name of the run (default: the environment's, with a number)")
      .option("--organization <name>", "the policy that says what happens next", "tree")
      .option("--max-trials <n>", "cap of searched trials", wholeNumber("--max-trials"), 20)
      .option("--max-time <duration>", "cap of active time, such as 30min or 8h", durationOption("--max-time"))
      .option("--max-compute <duration>", "cap of CPU time of all stages, such as 2h", durationOption("--max-compute"))
      .option("--max-cost <dollars>", "cap of what language models cost, in US dollars", positiveNumber("--max-cost"))
      .option("--max-tokens <n>", "cap of language models' tokens, in and out", wholeNumber("--max-tokens"))
      .option("--rule <rule>", "promotion: any, threshold or confirmed (default: the environment's)")
      .option("--confirmations <n>", "fresh-seed pairs per confirmation", wholeNumber("--confirmations"))
      .option("--seed <n>", "seed of researchers and of the policy's draws", wholeNumber("--seed"), 1)
      .option("--parallel <n>", "trials at once", wholeNumber("--parallel"), 1)
      .option("--sandbox <kind>", "bubblewrap, or none: candidates then run with your rights, and every result says so", "bubblewrap")
      .addHelpText("after", example);
    describeResearcherOptions(program);
    describeOrganizationOptions(program);
  },
  async run(input) {
    const { terminal } = input;
    const project = new Project(input.folder);
    const host = await openHost();
    const request = requestOf(input);
    if (request.sandbox === "none")
      terminal.note(
        "WARNING: --sandbox none. Candidates run with your rights: they can read labels, change files and reach the network. Every measurement of this run carries that mark.",
      );
    const name = await createRun(project, host, request);
    terminal.note(`run ${name}`);
    const owned = await ownRun(project, host, name, { frozen: true, progress: (line) => terminal.note(line) });
    const code = await driveRun(owned, name, terminal);
    finalAnswer(project, name, terminal);
    return code;
  },
};

function requestOf(input: CommandInput): Parameters<typeof createRun>[2] {
  const { options } = input;
  const sandbox = textOption(options, "sandbox");
  if (sandbox !== "bubblewrap" && sandbox !== "none") throw new UsageError(`--sandbox expects bubblewrap or none, ${sandbox} was given`);
  const organization = textOption(options, "organization") ?? "tree";
  return {
    environmentFolder: resolve(input.folder, input.args[0] ?? "."),
    name: textOption(options, "name") ?? null,
    organization: { name: organization, configuration: organizationConfiguration(organization, options) },
    ...researcherChoice(options),
    budget: budgetOf(options),
    promotion: promotionOf(options),
    seed: numberOption(options, "seed") ?? 1,
    parallel: numberOption(options, "parallel") ?? 1,
    sandbox,
  };
}

function budgetOf(options: CommandInput["options"]): BudgetLimits {
  return {
    trials: numberOption(options, "maxTrials") ?? null,
    costUsd: numberOption(options, "maxCost") ?? null,
    tokens: numberOption(options, "maxTokens") ?? null,
    computeMs: numberOption(options, "maxCompute") ?? null,
    wallMs: numberOption(options, "maxTime") ?? null,
  };
}

function promotionOf(options: CommandInput["options"]): Parameters<typeof createRun>[2]["promotion"] {
  const rule = promotionRule(options);
  const confirmations = numberOption(options, "confirmations");
  return { ...(rule === undefined ? {} : { rule }), ...(confirmations === undefined ? {} : { confirmations }) };
}
