import { createRun } from "../../../app/create-run.js";
import { openHost } from "../../../app/environments.js";
import { ownRun } from "../../../app/own-run.js";
import { Project } from "../../../app/project.js";
import { ownVersion } from "../../../app/version.js";
import { printable } from "../../../research/report/hostile-text.js";
import { sessionSocket } from "../../mcp/session-socket.js";
import type { CliCommand, CommandInput } from "../command.js";
import { detached } from "../detached.js";
import { driveRun } from "../drive.js";
import { finalAnswer } from "../final-answer.js";
import { describeOrganizationOptions, organizationRequest } from "../organization-options.js";
import { describeResearcherOptions, researcherChoice } from "../researcher-options.js";
import { describeRunOptions, runRequest } from "../run-options.js";
import { describeWarmStartOptions, warmStartRequest } from "../warm-start-options.js";

const example = `
A researcher is one of the environment's playbooks (reference, random …), a language model, or command:LINE, a shell
command that runs in the frozen environment, reads one JSON document { role, seed, round, violations, view } on standard
input and writes { "plan": { "hypothesis": "…" }, "files": { "PATH": "new text" } } on standard output. A model is a name
in trialist.config.yaml or PROVIDER:MODEL; its key comes from the environment, such as ANTHROPIC_API_KEY. agent:NAME is a
coding agent of trialist.config.yaml, which works in long sessions.

Example:
  trialist run environments/flchain --max-trials 20 --parallel 2
  trialist run . --researcher anthropic:claude-sonnet-4-5 --max-cost 5
  trialist run . --researcher openai-compatible --model qwen3 --base-url http://127.0.0.1:11434/v1 --allow-unknown-price
  trialist run . --organization sessions --researcher agent:claude --max-cost 5
  trialist run . --warm-start night --warm-start-top 2
  trialist run . --researcher 'command:python3 propose.py' --max-time 8h --name night`;

export const command: CliCommand = {
  describe(program) {
    program
      .argument("<environment>", "folder with an environment.yaml")
      .option("--organization <name>", "the policy that says what happens next", "tree")
      .option("--detach", "let the run go on in a process of its own, which outlives this terminal", false)
      .addHelpText("after", example);
    describeRunOptions(program);
    describeResearcherOptions(program);
    describeOrganizationOptions(program);
    describeWarmStartOptions(program);
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
    const name = await createRun(project, host, { ...request, note: (line) => terminal.note(printable(line)) });
    terminal.note(`run ${name}`);
    if (input.options["detach"] === true) {
      return detached(project, name, terminal, { frozen: true, reason: "detached from its terminal" });
    }
    const owned = await ownRun(project, host, name, {
      frozen: true,
      progress: (line) => terminal.note(line),
      serveTools: sessionSocket(await ownVersion()),
    });
    const code = await driveRun(owned, name, terminal);
    await finalAnswer(project, name, terminal);
    return code;
  },
};

function requestOf(input: CommandInput): Parameters<typeof createRun>[2] {
  return {
    ...runRequest(input),
    ...organizationRequest(input.options),
    ...researcherChoice(input.options),
    ...warmStartRequest(input.options),
  };
}
