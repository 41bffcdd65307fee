#!/usr/bin/env node
import { Command, CommanderError } from "commander";
import { exitCodes } from "./command.js";
import { commands } from "./registry.js";
import { openTerminal } from "./terminal.js";

const footer = `
Exit codes: 0 done · 2 refused, nothing changed · 3 the machine lacks something (trialist doctor) ·
4 the run stopped and can be resumed · 5 a record does not check out · 6, 7 a packet's claim does not hold, is
undecided · 130 interrupted, everything saved · 1 a defect

Example:
  trialist init --yes --edit train.py --run 'python train.py' --metric score --direction maximize
  trialist check . && trialist run . --max-trials 20 --researcher 'command:./propose.sh'
  trialist status RUN`;

async function main(argv: readonly string[]): Promise<number> {
  const program = new Command("trialist")
    .description(
      "Runs research on code: researchers propose changes to a recipe, trialist measures each under a protocol that they cannot bend.",
    )
    .version(await version())
    .exitOverride()
    .addHelpText("after", footer);
  const [first, second] = argv.filter((word) => !word.startsWith("-"));
  const asked = first === "help" ? second : first;
  let code: number = exitCodes.ok;
  for (const entry of commands) {
    const command = program.command(entry.name).description(entry.summary);
    if (entry.name !== asked) continue;
    const loaded = (await entry.load()).command;
    loaded.describe(command);
    command
      .option("--json", "print one JSON document instead of text")
      .option("-C, --folder <folder>", "the project's folder", process.cwd());
    command.exitOverride().action(async () => {
      const options = command.opts();
      code = await loaded.run({
        args: command.args,
        options,
        folder: String(options.folder),
        terminal: openTerminal(options.json === true),
      });
    });
  }
  await program.parseAsync([...argv], { from: "user" });
  return code;
}

async function version(): Promise<string> {
  const { readFile } = await import("node:fs/promises");
  const text = await readFile(new URL("../../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

async function fail(error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.refused;
  const [{ describeFailure }, { jsonDocument }] = await Promise.all([
    import("./failure.js"),
    import("../../research/report/hostile-text.js"),
  ]);
  const described = describeFailure(error);
  if (process.argv.includes("--json")) process.stdout.write(jsonDocument({ error: described.document }));
  process.stderr.write(`${described.text}\n`);
  return described.exitCode;
}

// Whoever reads the output may leave before its end, as `head` does: what is at work goes on, unheard.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });

process.exitCode = await main(process.argv.slice(2)).catch(fail);
// After a run was left at once, an answer that is still on its way must not keep the process.
setTimeout(() => process.exit(), 1000).unref();
