import type { AgentSettings } from "../adapters/researchers/agent/settings.js";
import { commandResearcher } from "../adapters/researchers/command.js";
import { providers } from "../adapters/researchers/model/providers.js";
import type { ModelSettings } from "../adapters/researchers/model/settings.js";
import type { Executor } from "../core/ports/executor.js";
import type { PreparedEnvironment } from "../core/ports/prepared-environment.js";
import type { Researcher } from "../core/ports/researcher.js";
import type { SessionModel } from "../core/ports/session-model.js";
import type { Environment } from "../core/protocol/environment.js";
import { RefusedError } from "../core/protocol/errors.js";
import { externalResearcher, noResearcher } from "../core/protocol/ids.js";
import { type RunConfiguration, researchersIn } from "../core/protocol/run.js";
import { roleNamed, roleNames } from "../research/roles/registry.js";
import { agentMeant, agentPrefix } from "./agents.js";
import type { ModelConfiguration } from "./model-configuration.js";
import { modelMeant, modelPrefix, type ResearcherWish } from "./model-names.js";
import {
  type FrozenModel,
  freezeModel,
  type ModelParts,
  modelResearcherNamed,
  sessionModelNamed,
  worstCaseOfModel,
} from "./model-researchers.js";
import { assertOptimizer, isOptimizer, type OptimizerParts, optimizerNamed, optimizerNames } from "./optimizers.js";
import type { Secrets } from "./secrets.js";

/** What a researcher is made of. */
interface Parts {
  readonly executor: Executor;
  readonly prepared: PreparedEnvironment;
  readonly configuration: RunConfiguration;
  /** Null where no optimizer is asked. */
  readonly optimizers: OptimizerParts | null;
  /** What command researchers see of the pack. */
  readonly folder: string;
  readonly bringFolder: () => Promise<void>;
  readonly models: ModelConfiguration["models"];
  readonly secrets: Secrets;
}

const customPrefix = "command:";
/** Wall limit of one call of a command researcher, in ms; CPU time has the same limit. */
export const commandWallMs = 120_000;

/** The researchers that a run's configuration names. */
export function researchersOf(parts: Parts): Map<string, Researcher> {
  const asked = researchersIn(parts.configuration).filter(
    (name) => ![externalResearcher, noResearcher].includes(name) && !name.startsWith(agentPrefix),
  );
  return new Map(asked.map((name) => [name, researcherNamed(name, parts)]));
}

/** The models among them, as ones that work in long sessions. */
export function sessionModelsOf(parts: Parts): Map<string, SessionModel> {
  const names = researchersIn(parts.configuration).filter((name) => name.startsWith(modelPrefix));
  return new Map(names.map((name) => [name, sessionModelNamed(name, modelParts(parts))]));
}

export function modelParts({ configuration, models, secrets }: Parts): ModelParts {
  return { settings: configuration.researcherSettings, models, secrets, offline: null };
}

/** `model:NAME` is a language model, `command:LINE` runs that line in the frozen pack; any other name is one of the pack's playbooks. */
function researcherNamed(name: string, parts: Parts): Researcher {
  if (name.startsWith(modelPrefix)) return modelResearcherNamed(name, modelParts(parts));
  const { executor, optimizers } = parts;
  const { sandbox, limits } = parts.configuration;
  if (isOptimizer(name) && optimizers !== null) return optimizerNamed(name, optimizers, { executor, sandbox, wallMs: limits.callWallMs });
  const { environment, runtime } = parts.prepared;
  assertCommand(name, environment.playbook);
  const command = name.startsWith(customPrefix) ? name.slice(customPrefix.length) : (environment.playbook[name] ?? "");
  return commandResearcher({
    name,
    command,
    folder: parts.folder,
    bringFolder: parts.bringFolder,
    executor,
    sandbox,
    path: runtime.path,
    mounts: runtime.mounts,
    wallMs: limits.callWallMs,
  });
}

/** Who answers which role, and what of them a run keeps. */
export type ChosenResearchers = Pick<RunConfiguration, "researchers" | "alternates" | "researcherSettings" | "callReservations">;

export interface ResearcherChoice {
  /** For every role that nobody names; null: the one of the project's configuration, else the playbook's `reference`. */
  readonly researcher: string | null;
  /** Of `researcher`, where that is a provider. */
  readonly model?: string | null;
  readonly baseUrl?: string | null;
  /** Role → researcher. */
  readonly researchersByRole?: Readonly<Record<string, string>>;
  /** They take turns with `researcher`. */
  readonly alternates?: readonly string[];
  readonly allowUnknownPrice?: boolean;
}

/**
 * Resolves who answers: the command line goes before the project's configuration.
 * @throws RefusedError for a researcher that is none, or a model without what it needs
 */
export function chooseResearchers(choice: ResearcherChoice, models: ModelConfiguration, environment: Environment): ChosenResearchers {
  const { playbook } = environment;
  const researchers: Record<string, string> = {};
  const settings: Record<string, FrozenModel> = {};
  const agents: Record<string, AgentSettings> = {};
  const resolve = (wish: ResearcherWish): string => {
    if (isOptimizer(wish.name)) {
      assertOptimizer(wish.name, environment);
      return wish.name;
    }
    const agent = agentMeant(wish.name, models);
    const meant = modelMeant(agent === null ? wish : { ...wish, name: agent.model }, models);
    if (agent !== null) agents[wish.name] = agent;
    if (meant === null && wish.name !== externalResearcher) assertCommand(wish.name, playbook, models.models);
    if (meant !== null) freezeWithFallbacks(meant, models, choice.allowUnknownPrice === true || models.allowUnknownPrice, settings);
    return agent === null ? (meant?.name ?? wish.name) : wish.name;
  };
  const everyone = choice.researcher ?? models.researchers["*"] ?? "reference";
  researchers["*"] = resolve({ name: everyone, model: choice.model ?? null, baseUrl: choice.baseUrl ?? null });
  for (const [role, name] of Object.entries({ ...models.researchers, ...choice.researchersByRole })) {
    if (role !== "*") researchers[knownRole(role)] = resolve({ name, model: null, baseUrl: null });
  }
  const alternates = (choice.alternates ?? []).map((name) => resolve({ name, model: null, baseUrl: null }));
  return {
    researchers,
    alternates,
    researcherSettings: { ...settings, ...agents },
    callReservations: reservations({ researchers, alternates }, settings, environment),
  };
}

function knownRole(role: string): string {
  if (roleNames.includes(role)) return role;
  throw new RefusedError({
    expected: `one of the roles ${roleNames.join(", ")}`,
    found: JSON.stringify(role),
    where: "--role, or researchers in trialist.config.yaml",
  });
}

function freezeWithFallbacks(
  meant: { readonly name: string; readonly settings: ModelSettings },
  models: ModelConfiguration,
  allowUnknownPrice: boolean,
  into: Record<string, FrozenModel>,
): void {
  if (Object.hasOwn(into, meant.name)) return;
  const fallback = models.models[meant.name.slice(modelPrefix.length)]?.fallback ?? null;
  into[meant.name] = freezeModel(meant.settings, fallback, allowUnknownPrice);
  const next = fallback === null ? undefined : models.models[fallback];
  if (next !== undefined)
    freezeWithFallbacks({ name: `${modelPrefix}${fallback}`, settings: next.settings }, models, allowUnknownPrice, into);
}

/** By role, the most that one question can use, whosever turn it is: a command uses CPU time, a model money and tokens. */
function reservations(
  { researchers, alternates }: Pick<RunConfiguration, "researchers" | "alternates">,
  settings: Record<string, FrozenModel>,
  environment: Environment,
): RunConfiguration["callReservations"] {
  const named = roleNames.map((role) => {
    const asked = researchers[role] === undefined ? [researchers["*"] ?? "", ...alternates] : [researchers[role]];
    const models = asked
      .filter((name) => name.startsWith(modelPrefix))
      .map((name) => worstCaseOfModel(name, settings, roleNamed(role).promptBytes(environment)));
    const most = (of: "costUsd" | "tokens"): number => Math.max(0, ...models.map((each) => each[of]));
    return [
      role,
      { costUsd: most("costUsd"), tokens: most("tokens"), computeMs: models.length === asked.length ? 0 : commandWallMs },
    ] as const;
  });
  return Object.fromEntries(named);
}

/** @throws RefusedError for a researcher that this environment has not */
function assertCommand(name: string, playbook: Readonly<Record<string, string>>, models: ModelConfiguration["models"] = {}): void {
  if (name.startsWith(customPrefix) && name.length > customPrefix.length) return;
  if (Object.hasOwn(playbook, name)) return;
  const known = [...Object.keys(playbook), ...Object.keys(models)];
  throw new RefusedError({
    expected: `a researcher: ${[...known, ...providers.map(({ name: provider }) => `${provider}:MODEL`), ...optimizerNames, "command:LINE"].join(", ")}`,
    found: JSON.stringify(name),
    todo:
      known.length === 0
        ? "This environment has no playbook: name a language model, or a command that reads one JSON document on standard input and writes one on standard output; `trialist run --help` shows examples."
        : "`trialist run --help` shows examples.",
  });
}
