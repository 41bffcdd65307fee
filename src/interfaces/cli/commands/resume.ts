import { openHost } from "../../../app/environments.js";
import { comesFromOutside, inspectRun } from "../../../app/inspect.js";
import { ownRun } from "../../../app/own-run.js";
import { Project } from "../../../app/project.js";
import { ownVersion } from "../../../app/version.js";
import { sessionSocket } from "../../mcp/session-socket.js";
import { type CliCommand, reasonOption } from "../command.js";
import { detached } from "../detached.js";
import { driveRun } from "../drive.js";
import { finalAnswer } from "../final-answer.js";
import { describeHookOptions, hookWishes } from "../hook-options.js";
import { UsageError } from "../usage-error.js";

/** Goes on with a run. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Goes on with a run that was paused, suspended or killed. What still runs is adopted, what ended is collected.")
      .argument("<run>", "name of the run")
      .option("--reason <text>", "why; recorded", reasonOption, "resumed from the command line")
      .option("--frozen", "go on with the frozen environment although its files changed since", false)
      .option("--detach", "let the run go on in a process of its own, which outlives this terminal", false)
      .addHelpText("after", "\nExample:\n  trialist resume night --detach");
    describeHookOptions(program);
  },
  async run({ args, options, folder, terminal }) {
    const name = args[0] ?? "";
    const project = new Project(folder);
    refuseServed(project, name);
    const how = { frozen: options.frozen === true, reason: String(options.reason), hooks: hookWishes(options) };
    if (options["detach"] === true) return detached(project, name, terminal, how);
    const owned = await ownRun(project, await openHost(), name, {
      frozen: how.frozen,
      progress: (line) => terminal.note(line),
      serveTools: sessionSocket(await ownVersion()),
      hooks: how.hooks,
    });
    owned.runner.command({ type: "resume", reason: how.reason });
    const code = await driveRun(owned, name, terminal);
    await finalAnswer(project, name, terminal);
    return code;
  },
};

/** It would wait for ever, without a word. */
function refuseServed(project: Project, name: string): void {
  const { state, close } = inspectRun(project, name);
  close();
  if (comesFromOutside(state))
    throw new UsageError(
      `${name} gets its trials from outside: \`trialist mcp --run ${name}\` serves it, \`trialist finish ${name} --reason …\` ends it`,
    );
}
