import { inspectRun } from "../../../app/inspect.js";
import { Project } from "../../../app/project.js";
import { trialNamed } from "../../../core/harness/state.js";
import { type CandidateManifest, readManifest } from "../../../core/protocol/candidate.js";
import { RefusedError } from "../../../core/protocol/errors.js";
import { diffCandidates, diffText } from "../../../research/report/candidate-diff.js";
import { printable } from "../../../research/report/hostile-text.js";
import { type CliCommand, exitCodes } from "../command.js";

/** What one candidate changed. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Shows what a trial's candidate changed, against the baseline or another trial.")
      .argument("<run>", "name of the run")
      .argument("[trial]", "id of a trial (default: the best)")
      .argument("[against]", "id of another trial", "t0")
      .addHelpText("after", "\nExample:\n  trialist diff night t7 t3");
  },
  async run({ args, folder, terminal }) {
    const [name = "", given, against = "t0"] = args;
    const inspected = inspectRun(new Project(folder), name);
    try {
      const { state, ledger } = inspected;
      const blob = (digest: string): Uint8Array => ledger.blob(digest);
      const manifest = (id: string): CandidateManifest => {
        const known = trialNamed(state, id);
        if (known === null)
          throw new RefusedError({
            expected: "a trial of this run",
            found: JSON.stringify(id),
            todo: `\`trialist show ${name}\` lists them.`,
          });
        return readManifest(blob(known.candidate.blob));
      };
      const trial = given ?? state.leader?.trial ?? "t0";
      const changes = diffCandidates(manifest(against), manifest(trial), blob);
      terminal.say(changes.length === 0 ? `${trial} and ${against} hold the same files.` : printable(diffText(changes)));
      terminal.data({ run: name, trial, against, changes });
      return exitCodes.ok;
    } finally {
      inspected.close();
    }
  },
};
