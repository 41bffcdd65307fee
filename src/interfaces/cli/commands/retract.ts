import { inspectRun } from "../../../app/inspect.js";
import { operate } from "../../../app/operate.js";
import { Project } from "../../../app/project.js";
import { type CliCommand, exitCodes, reasonOption, textOption } from "../command.js";

/** Marks a trial as invalid. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Marks a trial as invalid; what stood on it is listed, and the best falls back to the last keep that stands.")
      .argument("<run>", "name of the run")
      .argument("<trial>", "id of the trial, such as t7")
      .requiredOption("--reason <text>", "why; recorded", reasonOption)
      .addHelpText("after", "\nExample:\n  trialist retract night t7 --reason 'reads a leaked column'");
  },
  async run({ args, options, folder, terminal }) {
    const [name = "", trial = ""] = args;
    const project = new Project(folder);
    await operate(project, name, { type: "retract", trial, reason: textOption(options, "reason") ?? "" });
    const inspected = inspectRun(project, name);
    try {
      const dependents = [...inspected.ledger.read()].flatMap((event) =>
        event.type === "trial.retracted" && (event.data as { trial: string }).trial === trial
          ? (event.data as { dependents: string[] }).dependents
          : [],
      );
      const best = inspected.state.leader?.trial ?? null;
      terminal.say(`${trial} is retracted. The best is now ${best ?? "unknown"}.`);
      terminal.say(dependents.length === 0 ? "Nothing stood on it." : `Stood on it, look again: ${dependents.join(", ")}`);
      terminal.data({ run: name, retracted: trial, dependents, best });
      return exitCodes.ok;
    } finally {
      inspected.close();
    }
  },
};
