import type { Command } from "commander";
import { z } from "zod";
import { organizationNamed } from "../../core/organizations/registry.js";
import { type CommandInput, textOption, wholeNumber } from "./command.js";
import { UsageError } from "./usage-error.js";

interface OrganizationOption {
  /** `--drafts <n>`; the rest of its name in camel case is the member of the organization's configuration. */
  readonly flags: string;
  readonly member: string;
  readonly description: string;
  readonly parse: (text: string) => unknown;
}

/** By organization: what of its configuration can be set on the command line. */
const optionsOf: Readonly<Record<string, readonly OrganizationOption[]>> = {
  sessions: [
    {
      flags: "--sessions <n>",
      member: "sessions",
      description: "sessions: long sessions side by side; 0: all comes from outside (default 1)",
      parse: wholeNumber("--sessions"),
    },
  ],
  tree: [
    {
      flags: "--drafts <n>",
      member: "drafts",
      description: "tree: drafts before anything else (default 5)",
      parse: wholeNumber("--drafts"),
    },
    {
      flags: "--debug-probability <p>",
      member: "debugProbability",
      description: "tree: chance that a step repairs a failure (default 0.5)",
      parse: Number,
    },
    {
      flags: "--max-debug-depth <n>",
      member: "maxDebugDepth",
      description: "tree: longest chain of repairs (default 3)",
      parse: wholeNumber("--max-debug-depth"),
    },
  ],
};

export function describeOrganizationOptions(program: Command): void {
  for (const { flags, description, parse } of Object.values(optionsOf).flat()) program.option(flags, description, parse);
}

/** The members of organizations' configurations that were given. */
export function givenOrganizationOptions(options: CommandInput["options"]): Record<string, unknown> {
  const members = Object.values(optionsOf).flat();
  return Object.fromEntries(members.map(({ member }) => [member, options[member]]).filter(([, value]) => value !== undefined));
}

/** The organization that the options name, with its configuration. @throws UsageError */
export function organizationRequest(options: CommandInput["options"]): {
  readonly organization: { readonly name: string; readonly configuration: Record<string, unknown> };
} {
  const name = textOption(options, "organization") ?? "tree";
  return { organization: { name, configuration: organizationConfiguration(name, options) } };
}

/**
 * The configuration that an organization's options ask for, completed by its defaults.
 * @throws UsageError that names the option which does not fit
 */
export function organizationConfiguration(organization: string, options: CommandInput["options"]): Record<string, unknown> {
  const own = Object.hasOwn(optionsOf, organization) ? (optionsOf[organization] ?? []) : [];
  const given = Object.fromEntries(own.map(({ member }) => [member, options[member]]).filter(([, value]) => value !== undefined));
  try {
    return organizationNamed(organization).configure(given) as Record<string, unknown>;
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    const issue = error.issues[0];
    const option = own.find(({ member }) => member === issue?.path[0]);
    throw new UsageError(`${option?.flags.split(" ")[0] ?? `organization ${organization}`}: ${issue?.message ?? "does not fit"}`, {
      cause: error,
    });
  }
}
