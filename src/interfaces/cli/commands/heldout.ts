import { openHost } from "../../../app/environments.js";
import { heldoutLook } from "../../../app/heldout.js";
import { inspectRun } from "../../../app/inspect.js";
import { Project } from "../../../app/project.js";
import { printable } from "../../../research/report/hostile-text.js";
import { type CliCommand, exitCodes, reasonOption, textOption } from "../command.js";

/** One look at the held-out split. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Scores a trial of a run that is over on the held-out split. Every look is counted and recorded, apart from the run.")
      .argument("<run>", "name of the run")
      .argument("[trial]", "id of a trial (default: the best; t0 is the baseline)")
      .option("--reason <text>", "why; recorded", reasonOption, "a look at the result")
      .addHelpText("after", "\nExample:\n  trialist heldout night\n  trialist heldout night t0 --reason 'the baseline for comparison'");
  },
  async run({ args, options, folder, terminal }) {
    const [name = "", trial] = args;
    const inspected = inspectRun(new Project(folder), name);
    try {
      const answer = await heldoutLook(await openHost(), inspected, trial ?? null, textOption(options, "reason") ?? "", (line) =>
        terminal.note(line),
      );
      if (answer.failure !== null) terminal.say(printable(`${answer.trial} gave no held-out score: ${answer.failure}`));
      for (const [metric, value] of Object.entries(answer.heldout ?? {})) {
        const inloop = answer.inloop?.[metric];
        terminal.say(
          `${answer.trial}  ${metric}  held-out ${Number(value.toPrecision(6))}   in-loop ${inloop === undefined ? "unknown" : Number(inloop.toPrecision(6))}`,
        );
      }
      terminal.say(`Looks at this run's held-out split so far: ${answer.looks}`);
      terminal.data({ run: name, ...answer });
      return answer.failure === null ? exitCodes.ok : exitCodes.infrastructure;
    } finally {
      inspected.close();
    }
  },
};
