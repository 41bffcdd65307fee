import { realpathSync } from "node:fs";
import { relative } from "node:path";
import { codingAgent } from "../adapters/researchers/agent/coding-agent.js";
import { type AgentSettings, agentSettings } from "../adapters/researchers/agent/settings.js";
import { addressOf } from "../adapters/researchers/agent/upstream.js";
import { organizationNamed, sessionOrganizations } from "../core/organizations/registry.js";
import type { Executor } from "../core/ports/executor.js";
import type { PreparedEnvironment } from "../core/ports/prepared-environment.js";
import type { ServeTools, SessionAgent } from "../core/ports/session-agent.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import type { Host } from "./environments.js";
import { type ModelConfiguration, modelConfigurationFile } from "./model-configuration.js";
import { modelPrefix } from "./model-names.js";
import { type ModelParts, modelOptions } from "./model-researchers.js";
import type { Project } from "./project.js";

/** Begins the name of every researcher of a run that is a coding agent. */
export const agentPrefix = "agent:";

/**
 * The agent that a researcher's name means, as a run keeps it; null when it means none.
 * @throws RefusedError for an agent that is not configured, or whose model cannot be its
 */
export function agentMeant(name: string, { agents, models }: ModelConfiguration): AgentSettings | null {
  if (!name.startsWith(agentPrefix)) return null;
  const short = name.slice(agentPrefix.length);
  const found = Object.hasOwn(agents, short) ? agents[short] : undefined;
  const known = Object.keys(agents).map((each) => `${agentPrefix}${each}`);
  if (found === undefined)
    throw new RefusedError({
      expected: known.length === 0 ? `an agent under \`agents\` in ${modelConfigurationFile}` : `an agent: ${known.join(", ")}`,
      found: JSON.stringify(name),
    });
  const where = `${modelConfigurationFile}: agents.${short}`;
  const model = Object.hasOwn(models, found.model) ? models[found.model] : undefined;
  if (model === undefined) throw new RefusedError({ expected: "a name under `models`", found: JSON.stringify(found.model), where });
  if (addressOf(model.settings) === null)
    throw new RefusedError({ expected: "a model of anthropic, openai or openai-compatible", found: model.settings.provider, where });
  const settings = agentSettings.safeParse({
    command: found.command,
    model: `${modelPrefix}${found.model}`,
    wallMs: Math.ceil(found.turnMinutes * 60_000),
    mounts: found.mounts,
  });
  if (settings.success) return settings.data;
  throw new RefusedError({
    expected: "settings of an agent",
    found: settings.error.issues.map(({ message }) => message).join(", "),
    where,
  });
}

/**
 * Agents work in long sessions alone, behind a sandbox, and see nothing of what measures them.
 * @throws RefusedError
 */
export function refuseMisplacedAgents(
  {
    researchers,
    researcherSettings,
    ...request
  }: Pick<RunConfiguration, "researchers" | "researcherSettings"> & {
    readonly organization: { readonly name: string };
    readonly sandbox: RunConfiguration["sandbox"];
  },
  hidden: { readonly project: Project; readonly host: Host; readonly environmentFolder: string },
): void {
  for (const name of agentNames(researchers)) {
    if (organizationNamed(request.organization.name).asks !== "sessions")
      throw new RefusedError({
        expected: `--organization ${sessionOrganizations.join(" or ")} for ${name}`,
        found: request.organization.name,
      });
    if (request.sandbox === "none") throw new RefusedError({ expected: `a sandbox around ${name}`, found: "--sandbox none" });
    const closed = [hidden.project.folder, hidden.environmentFolder, hidden.host.cache.root];
    for (const mount of agentSettings.parse(researcherSettings[name]).mounts) refuseOpen(mount, closed, name);
  }
}

/** A mounted folder must not show the ledger, labels or evaluators. */
function refuseOpen(mount: string, closed: readonly string[], name: string): void {
  const where = `${modelConfigurationFile}: mounts of ${name}`;
  const real = realOf(mount);
  if (real === null) throw new RefusedError({ expected: "a folder that exists", found: mount, where });
  const shown = closed.find((each) => holds(real, realOf(each) ?? each) || holds(realOf(each) ?? each, real));
  if (shown !== undefined)
    throw new RefusedError({
      expected: "a folder apart from the project, the environment and the cache",
      found: `${mount}, and ${shown}`,
      where,
    });
}

function realOf(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

function holds(outer: string, inner: string): boolean {
  const way = relative(outer, inner);
  return way === "" || !(way === ".." || way.startsWith("../"));
}

export function agentNames(researchers: RunConfiguration["researchers"]): string[] {
  return [...new Set(Object.values(researchers))].filter((name) => name.startsWith(agentPrefix));
}

interface AgentParts extends ModelParts {
  readonly executor: Executor;
  readonly prepared: PreparedEnvironment;
  readonly configuration: RunConfiguration;
  readonly scratch: string;
  /** Null: whoever drives the run cannot serve tools. */
  readonly serveTools: ServeTools | null;
}

/** The agents among a run's researchers; a new kind is a file among the adapters, and a line here. */
export function sessionAgentsOf(parts: AgentParts): Map<string, SessionAgent> {
  return new Map(agentNames(parts.configuration.researchers).map((name) => [name, agentNamed(name, parts)]));
}

function agentNamed(name: string, parts: AgentParts): SessionAgent {
  const { executor, prepared, scratch, serveTools } = parts;
  if (serveTools === null) throw new RefusedError({ expected: "a command line that can serve MCP to an agent", found: name });
  const settings = agentSettings.parse(parts.settings[name]);
  const { path, mounts } = prepared.runtime;
  return codingAgent({ name, settings, model: modelOptions(settings.model, parts), executor, serveTools, scratch, path, mounts });
}
