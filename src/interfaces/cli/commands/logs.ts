import { createReadStream, existsSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { logFile } from "../../../app/detach.js";
import { isWorkedOn } from "../../../app/follow.js";
import { Project } from "../../../app/project.js";
import { type CliCommand, exitCodes } from "../command.js";

const lookMs = 300;

/** What a detached run said. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Prints what a detached run said, which it has no terminal for.")
      .argument("<run>", "name of the run")
      .option("-f, --follow", "go on while somebody works on the run", false)
      .addHelpText("after", "\nExample:\n  trialist logs night -f");
  },
  async run({ args, options, folder, terminal }) {
    const name = args[0] ?? "";
    const project = new Project(folder);
    const file = logFile(project, name);
    if (!existsSync(file)) {
      terminal.note(`${name} has no log: it was never detached. \`trialist show ${name}\` shows its trials.`);
      return exitCodes.ok;
    }
    let shown = await print(file, 0);
    while (options["follow"] === true && isWorkedOn(project, name)) {
      await sleep(lookMs);
      shown = await print(file, shown);
    }
    await print(file, shown);
    return exitCodes.ok;
  },
};

/** Prints a file from an offset on; its size then. */
async function print(file: string, from: number): Promise<number> {
  const { size } = statSync(file);
  if (size <= from) return from;
  for await (const chunk of createReadStream(file, { start: from, end: size - 1 })) process.stdout.write(chunk as Buffer);
  return size;
}
