import { organizationNamed } from "../core/organizations/registry.js";
import { RefusedError } from "../core/protocol/errors.js";
import { externalResearcher } from "../core/protocol/ids.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import type { Project } from "./project.js";
import type { ChosenResearchers } from "./researchers.js";

/** Who works in long sessions, and who answers role calls, is known before anything is measured. */
export function refuseMisfits(
  { organization }: Pick<RunConfiguration, "organization">,
  { researchers, alternates }: ChosenResearchers,
): void {
  const { asks, configure, isServed: servedUnder } = organizationNamed(organization.name);
  const isSessions = asks === "sessions";
  if (isSessions && alternates.length > 0)
    throw new RefusedError({
      expected: "one researcher for long sessions",
      found: `${alternates.length + 1} that take turns`,
      where: "--turns",
      todo: "Turns are taken call by call: leave --turns or --organization away.",
    });
  const isServed = servedUnder(configure(organization.configuration));
  const external = Object.values(researchers).includes(externalResearcher);
  if (external && !isServed)
    throw new RefusedError({
      expected: "a researcher of this machine",
      found: externalResearcher,
      todo: "`trialist mcp ENVIRONMENT` makes a run whose trials come from outside.",
    });
  const generalist = researchers["generalist"] ?? researchers["*"] ?? "";
  if (!isSessions || isServed || /^(model|agent):/.test(generalist)) return;
  throw new RefusedError({
    expected: "a researcher that works in long sessions: a language model or a coding agent",
    found: JSON.stringify(generalist),
    todo: "Name one, such as --researcher anthropic:MODEL, or leave --organization away.",
  });
}

export function refuseMissingKeys(variables: readonly string[]): void {
  if (variables.length === 0) return;
  throw new RefusedError({
    expected: "the keys of the models that this run asks",
    found: `no ${variables.join(", no ")} in the environment`,
    todo: "Set it, or name a key_command in trialist.config.yaml.",
  });
}

export function refuseTaken(project: Project, name: string): void {
  project.runFolder(name);
  if (!project.runNames().includes(name)) return;
  throw new RefusedError({
    expected: "a name that no run of this project has",
    found: JSON.stringify(name),
    todo: `\`trialist resume ${name}\` goes on with that run; choose another --name for a new one.`,
  });
}
