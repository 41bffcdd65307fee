import { followRun } from "../../../app/follow.js";
import { Project } from "../../../app/project.js";
import { liveLine, trialLine } from "../../../research/report/progress-line.js";
import { type CliCommand, exitCodes } from "../command.js";
import { finalAnswer } from "../final-answer.js";

/** Looks on while another process works on a run. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Shows the progress of a run that another process works on, until it ends. Ctrl-C leaves it as it is.")
      .argument("<run>", "name of the run")
      .addHelpText("after", "\nExample:\n  trialist run . --detach --name night\n  trialist attach night");
  },
  async run({ args, folder, terminal }) {
    const name = args[0] ?? "";
    const project = new Project(folder);
    const leave = new AbortController();
    const onSignal = (): void => leave.abort();
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, onSignal);
    const { end, state } = await followRun(
      project,
      name,
      {
        onStart: (now) => terminal.note(`${liveLine(now, Date.now())}   (Ctrl-C leaves it as it is)`),
        onEvent: (event, now) => {
          if (event.type === "trial.ended") terminal.note(trialLine(now, event.data.trial, terminal.notePaint));
          terminal.live(liveLine(now, Date.now()));
        },
      },
      leave.signal,
    );
    terminal.live("");
    if (end === "left") {
      terminal.note(`Left; the run goes on. \`trialist attach ${name}\` looks on again.`);
      return exitCodes.interrupted;
    }
    if (end === "without an owner") terminal.note(`Nobody works on ${name}: \`trialist resume ${name}\` goes on.`);
    await finalAnswer(project, name, terminal);
    return state.phase === "finished" ? exitCodes.ok : state.phase === "cancelled" ? exitCodes.refused : exitCodes.suspended;
  },
};
