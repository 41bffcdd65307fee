import { resolve } from "node:path";
import { confirm } from "@clack/prompts";
import { planGate } from "../../../app/calibrate-gate.js";
import { concludeGate } from "../../../app/conclude-gate.js";
import { openHost } from "../../../app/environments.js";
import { ownRun } from "../../../app/own-run.js";
import { Project } from "../../../app/project.js";
import { RefusedError } from "../../../core/protocol/errors.js";
import { printable } from "../../../research/report/hostile-text.js";
import { duration } from "../../../research/report/numbers.js";
import { ruleErrorsLines } from "../../../research/report/rule-errors-lines.js";
import { type CliCommand, type CommandInput, exitCodes, numberOption, positiveNumber, textOption, wholeNumber } from "../command.js";
import { driveRun } from "../drive.js";
import { promotionRule } from "../promotion-options.js";
import { UsageError } from "../usage-error.js";

const example = `
Every copy is measured, judged and, where the rule wants it, confirmed as any candidate: each keep is a false one. The same
command again goes on where it was interrupted, and shows the figures once they are there. They stand beside the verdicts of
all runs of this environment under this rule on this machine that start afterwards, in the same sandbox, and with the same
--parallel where a metric is a time.

Example:
  trialist calibrate environments/digits-speed --aa 40 --yes
  trialist calibrate environments/flchain --aa 20 --planted 0.01 --planted 0.02`;

/** How often a rule keeps what is no better. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Measures how often the promotion rule keeps what is no better: copies of the baseline go through it as trials.")
      .argument("<environment>", "folder with an environment.yaml")
      .requiredOption("--aa <n>", "copies of the baseline", wholeNumber("--aa"))
      .option(
        "--planted <gain>",
        "a true gain that is put into what was measured, to see how often the rule finds it; may be given again (default: 0.5, 1 and 2 times the smallest visible gain)",
        (text: string, before: number[] | undefined) => [...(before ?? []), positiveNumber("--planted")(text)],
      )
      .option("--rule <rule>", "promotion: any, threshold or confirmed (default: the environment's)")
      .option("--confirmations <n>", "fresh-seed pairs per confirmation", wholeNumber("--confirmations"))
      .option("--name <name>", "name of the run of copies (default: one that the same command finds again)")
      .option("--seed <n>", "seed of the confirmations", wholeNumber("--seed"), 1)
      .option("--parallel <n>", "copies at once", wholeNumber("--parallel"), 1)
      .option("--sandbox <kind>", "bubblewrap or none", "bubblewrap")
      .option("--yes", "do not ask", false)
      .addHelpText("after", example);
  },
  async run(input) {
    const { terminal } = input;
    const project = new Project(input.folder);
    const host = await openHost();
    const planted = plantedIn(input);
    const planned = await planGate(project, host, requestOf(input));
    if (planned.phase !== "finished") {
      if (planned.phase === "new") {
        await agree(input, planned);
        await planned.create();
      }
      terminal.note(`run ${planned.run}`);
      const owned = await ownRun(project, host, planned.run, { frozen: true, progress: (line) => terminal.note(line) });
      if (planned.phase !== "new") owned.runner.command({ type: "resume", reason: "the same command was given again" });
      const code = await driveRun(owned, planned.run, terminal);
      if (code !== exitCodes.ok) return code;
    }
    const measured = await concludeGate(project, host, planned, {
      planted,
      note: (line) => terminal.note(printable(line)),
    });
    const { environment, environmentDigest, promotion } = measured.configuration;
    for (const line of ruleErrorsLines(measured.configuration, measured.gate)) terminal.say(printable(line));
    terminal.data({ environment: { name: environment.name, digest: environmentDigest }, rule: promotion, gate: measured.gate });
    return exitCodes.ok;
  },
};

type Planned = Awaited<ReturnType<typeof planGate>>;

function requestOf({ args, options, folder }: CommandInput): Parameters<typeof planGate>[2] {
  const sandbox = textOption(options, "sandbox");
  if (sandbox !== "bubblewrap" && sandbox !== "none") throw new UsageError(`--sandbox expects bubblewrap or none, ${sandbox} was given`);
  const rule = promotionRule(options);
  const confirmations = numberOption(options, "confirmations");
  return {
    environmentFolder: resolve(folder, args[0] ?? "."),
    name: textOption(options, "name") ?? null,
    copies: numberOption(options, "aa") ?? 0,
    promotion: { ...(rule === undefined ? {} : { rule }), ...(confirmations === undefined ? {} : { confirmations }) },
    seed: numberOption(options, "seed") ?? 1,
    parallel: numberOption(options, "parallel") ?? 1,
    sandbox,
  };
}

function plantedIn({ options }: CommandInput): readonly number[] | null {
  const gains = options["planted"];
  if (!Array.isArray(gains)) return null;
  if (gains.length > 20) throw new UsageError("--planted can be given at most 20 times");
  return gains.map(Number);
}

/** Says what it takes, and asks where somebody can answer. */
async function agree(input: CommandInput, { measurements: { least, most }, measurementMs }: Planned): Promise<void> {
  const { options, terminal } = input;
  const between = (write: (passes: number) => string): string => (least === most ? write(least) : `${write(least)} to ${write(most)}`);
  const parallel = numberOption(options, "parallel") ?? 1;
  const takes =
    measurementMs === null
      ? "how long one takes is known once the baseline is measured"
      : `about ${between((passes) => duration((passes * measurementMs) / parallel))}`;
  terminal.note(`It takes ${between(String)} measurements; ${takes}.`);
  if (options["yes"] === true) return;
  if (!terminal.isInteractive || process.stdin.isTTY !== true)
    throw new UsageError("calibrate asks before it begins, and nobody can answer here: give --yes");
  if ((await confirm({ message: "Begin?" })) === true) return;
  throw new RefusedError({ expected: "a yes", found: "another answer", todo: "Nothing was measured." });
}
