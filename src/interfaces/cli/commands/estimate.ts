import { openHost } from "../../../app/environments.js";
import { type Estimate, estimateRun } from "../../../app/estimate.js";
import { Project } from "../../../app/project.js";
import { printable } from "../../../research/report/hostile-text.js";
import { money } from "../../../research/report/numbers.js";
import { type CliCommand, exitCodes } from "../command.js";
import { describeOrganizationOptions, organizationRequest } from "../organization-options.js";
import { describeResearcherOptions, researcherChoice } from "../researcher-options.js";
import { describeRunOptions, runRequest } from "../run-options.js";

/** What a run may cost in language models. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Says what a run with these options may cost in language models, by role; starts nothing and asks nobody.")
      .argument("<environment>", "folder with an environment.yaml")
      .option("--organization <name>", "the policy that says what happens next", "tree")
      .addHelpText("after", "\nExample:\n  trialist estimate environments/flchain --researcher openai:gpt-5-mini --max-trials 50");
    describeRunOptions(program);
    describeResearcherOptions(program);
    describeOrganizationOptions(program);
  },
  async run(input) {
    const request = { ...runRequest(input), ...organizationRequest(input.options), ...researcherChoice(input.options) };
    const estimate = await estimateRun(new Project(input.folder), await openHost(), request);
    for (const line of linesOf(estimate)) input.terminal.say(printable(line));
    input.terminal.data(estimate);
    return exitCodes.ok;
  },
};

function linesOf({ roles, rounds, trials, total, caps, assumed }: Estimate): string[] {
  if (roles.length === 0)
    return ["This organization asks no role: each turn of a session reserves its own most. --max-cost and --max-tokens bound them all."];
  const models = roles.filter(({ isModel }) => isModel);
  if (models.length === 0) return ["No language model is asked: a run with these options costs CPU time alone."];
  const lines = models.map(
    ({ role, researcher, promptBytes, worst, likely }) =>
      `${role}: ${researcher}, prompt ${promptBytes} bytes; a question likely ${money(likely.costUsd)} and ${likely.tokens} tokens, at most ${money(worst.costUsd)} and ${worst.tokens}`,
  );
  if (total === null) lines.push("No cap of trials: the total is bounded by --max-cost and --max-tokens alone.");
  else {
    lines.push(`${trials} trials, one question each: likely ${money(total.likely.costUsd)} and ${total.likely.tokens} tokens`);
    lines.push(
      `If every question is asked ${rounds} times and uses the most it can: ${money(total.worst.costUsd)} and ${total.worst.tokens} tokens`,
    );
  }
  const capped = [
    caps.costUsd === null ? "" : `--max-cost ${money(caps.costUsd)}`,
    caps.tokens === null ? "" : `--max-tokens ${caps.tokens}`,
  ];
  const given = capped.filter((cap) => cap !== "");
  lines.push(
    given.length === 0
      ? "No cap of cost or tokens is given: --max-cost and --max-tokens set one."
      : `It stops at ${given.join(" and ")} at the latest.`,
  );
  lines.push(`Likely means ${assumed.bytesPerToken} bytes a token and answers of ${assumed.outputTokens} tokens: assumed, not measured.`);
  return lines;
}
