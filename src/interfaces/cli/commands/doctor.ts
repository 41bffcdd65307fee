import { examineMachine } from "../../../app/doctor.js";
import { type CliCommand, exitCodes } from "../command.js";

/** What the machine lacks. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Says what this machine lacks for a run, and how to mend it.")
      .addHelpText("after", "\nExample:\n  trialist doctor");
  },
  async run({ terminal }) {
    const checks = await examineMachine();
    for (const check of checks) {
      const mark = check.ok ? terminal.paint.good("ok  ") : check.required ? terminal.paint.bad("MISSING") : "weak";
      terminal.say(`${mark.padEnd(8)} ${check.name.padEnd(18)} ${check.found}`);
      if (!check.ok && check.mend !== "") terminal.say(`         ${" ".repeat(18)} → ${check.mend}`);
    }
    const usable = checks.every((check) => check.ok || !check.required);
    terminal.say(usable ? "A run can start on this machine." : "A run cannot start before what is MISSING is mended.");
    terminal.data({ usable, checks });
    return usable ? exitCodes.ok : exitCodes.infrastructure;
  },
};
