import { resolve } from "node:path";
import { openHost } from "../../../app/environments.js";
import { inspectRun } from "../../../app/inspect.js";
import { packRun } from "../../../app/pack-run.js";
import { Project } from "../../../app/project.js";
import { printable } from "../../../research/report/hostile-text.js";
import { bytes, plural } from "../../../research/report/numbers.js";
import { type CliCommand, exitCodes, textOption } from "../command.js";

/** A trial as one archive, for somebody else to measure again. */
export const command: CliCommand = {
  describe(program) {
    program
      .description(
        "Writes a trial of a run that is over as one archive: candidate, baseline, frozen environment, seeds, values, verdicts. Held-out data is never in it.",
      )
      .argument("<run>", "name of the run")
      .option("--trial <id>", "the trial (default: the best)")
      .option("--out <file>", "a new file (default: .trialist/packets/RUN-TRIAL.tar.gz)")
      .option("--with-data", "include labels, and data that a preparation can make again")
      .option("--with-ledger", "include the run's whole ledger")
      .addHelpText("after", "\nExample:\n  trialist pack night\n  trialist pack night --trial t7 --out t7.tar.gz --with-ledger");
  },
  async run({ args, options, folder, terminal }) {
    const name = args[0] ?? "";
    const project = new Project(folder);
    const inspected = inspectRun(project, name);
    try {
      const trial = textOption(options, "trial") ?? null;
      const out = textOption(options, "out");
      const file = out === undefined ? null : resolve(folder, out);
      const wanted = { trial, file, withData: options["withData"] === true, withLedger: options["withLedger"] === true };
      const packed = await packRun(project, await openHost(), inspected, wanted, (line) => terminal.note(printable(line)));
      terminal.say(printable(`${packed.file}: ${packed.trial}, ${plural(packed.files, "file")}, ${bytes(packed.bytes)}`));
      terminal.say(`packet ${packed.digest}`);
      if (packed.holdsLabels) terminal.note("WARNING: it holds labels of the in-loop split: give it to nobody who proposes candidates.");
      for (const { what, why } of packed.leftOut) terminal.say(printable(`left out: ${what}: ${why}`));
      terminal.data({ run: name, ...packed });
      return exitCodes.ok;
    } finally {
      inspected.close();
    }
  },
};
