import { type Command, Option } from "commander";
import type { ResearcherChoice } from "../../app/researchers.js";
import { type CommandInput, textOption } from "./command.js";
import { UsageError } from "./usage-error.js";

/** Who proposes, and with which model: flags, or the environment of the command. */
export function describeResearcherOptions(program: Command, defaults: "from the environment" | "none" = "from the environment"): void {
  const from = (option: Option, variable: string): Option => (defaults === "none" ? option : option.env(variable));
  program
    .addOption(
      from(
        new Option(
          "--researcher <researcher>",
          `who proposes: a playbook's name, a model of trialist.config.yaml, PROVIDER:MODEL, optuna:tpe, command:LINE or agent:NAME (default: ${defaults === "none" ? "the source's" : "reference"})`,
        ),
        "TRIALIST_RESEARCHER",
      ),
    )
    .addOption(from(new Option("--model <model>", "the model, where --researcher is a provider"), "TRIALIST_MODEL"))
    .addOption(
      from(new Option("--base-url <url>", "address of the model's server, where it is not the provider's own"), "TRIALIST_BASE_URL"),
    )
    .option(
      "--turns <researcher>",
      "another researcher that takes turns with --researcher, call by call; may be given again",
      (name: string, before: string[] | undefined) => [...(before ?? []), name],
    )
    .option("--role <role=researcher>", "another researcher for one role, such as debug=fast; may be given again", roles)
    .option("--allow-unknown-price", "let a model without a known price run; it counts as 0 dollars", false);
}

function roles(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const place = text.indexOf("=");
  if (place < 1 || place === text.length - 1)
    throw new UsageError(`--role expects ROLE=RESEARCHER, such as debug=fast; ${JSON.stringify(text)} was given`);
  return { ...before, [text.slice(0, place)]: text.slice(place + 1) };
}

export function researcherChoice(options: CommandInput["options"]): ResearcherChoice {
  return {
    researcher: textOption(options, "researcher") ?? null,
    model: textOption(options, "model") ?? null,
    baseUrl: textOption(options, "baseUrl") ?? null,
    researchersByRole: (options["role"] as Record<string, string> | undefined) ?? {},
    alternates: (options["turns"] as string[] | undefined) ?? [],
    allowUnknownPrice: options["allowUnknownPrice"] === true,
  };
}
