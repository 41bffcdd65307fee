import { resolve } from "node:path";
import { checkEnvironment } from "../../../app/check-environment.js";
import { openHost } from "../../../app/environments.js";
import { printable } from "../../../research/report/hostile-text.js";
import { type CliCommand, exitCodes } from "../command.js";

/** Validates an environment and proves its walls. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Validates an environment, makes its runtime and data ready, and proves by trying what a candidate of it cannot do.")
      .argument("[environment]", "folder with an environment.yaml", ".")
      .addHelpText("after", "\nExample:\n  trialist check environments/flchain");
  },
  async run({ args, folder, terminal }) {
    const checked = await checkEnvironment(await openHost(), resolve(folder, args[0] ?? "."), (line) => terminal.note(printable(line)));
    terminal.say(`${checked.name}: valid; stages ${checked.stages.join(", ")}`);
    terminal.say(`digest ${checked.digest}`);
    for (const proof of checked.proofs)
      terminal.say(`${proof.held ? terminal.paint.good("held  ") : terminal.paint.bad("BROKEN")} ${proof.name.padEnd(12)} ${proof.detail}`);
    const held = checked.proofs.every((proof) => proof.held);
    terminal.say(
      held
        ? "A candidate cannot read labels, reach the network, write the evaluator, see the host, or leave a process behind."
        : "The sandbox does not hold on this machine: `trialist doctor` says more. Do not trust a run here.",
    );
    terminal.data({ ...checked, held });
    return held ? exitCodes.ok : exitCodes.corrupt;
  },
};
