import { readCandidate } from "../adapters/environments/freeze.js";
import { openMemoryLedger } from "../adapters/ledger/memory-ledger.js";
import { dollars } from "../adapters/researchers/model/worst-case.js";
import { organizationNamed } from "../core/organizations/registry.js";
import { canonicalJson } from "../core/protocol/canonical.js";
import type { Environment } from "../core/protocol/environment.js";
import type { ManifestReference } from "../core/protocol/ids.js";
import { byteLength } from "../research/roles/prompt.js";
import { roleNamed, roleNames } from "../research/roles/registry.js";
import type { Blobs } from "../research/roles/role.js";
import type { RunRequest } from "./create-run.js";
import { freezeFolder, type Host } from "./environments.js";
import { loadModelConfiguration } from "./model-configuration.js";
import { modelPrefix } from "./model-names.js";
import { frozenOf } from "./model-researchers.js";
import type { Project } from "./project.js";
import { chooseResearchers } from "./researchers.js";
import { callLimits } from "./run-configuration.js";

/** US dollars and tokens of language models. */
interface Use {
  readonly costUsd: number;
  readonly tokens: number;
}

export interface RoleEstimate {
  readonly role: string;
  readonly researcher: string;
  /** UTF-8 bytes of the prompt about the baseline, before anything was tried. */
  readonly promptBytes: number;
  /** The most that one question can use: what is reserved before it is asked. */
  readonly worst: Use;
  /** One question with a prompt of that length and an answer of `assumed.outputTokens`. */
  readonly likely: Use;
  readonly isModel: boolean;
}

export interface Estimate {
  readonly environment: string;
  readonly roles: readonly RoleEstimate[];
  /** Null: no cap. */
  readonly trials: number | null;
  /** Of a call: the first answer and its repairs. */
  readonly rounds: number;
  /** Over all trials; null without a cap of trials. `likely`: one question a trial, as dear as the roles are on average. */
  readonly total: { readonly worst: Use; readonly likely: Use } | null;
  readonly caps: { readonly costUsd: number | null; readonly tokens: number | null };
  /** What the likely figures rest on; nobody measured them. */
  readonly assumed: { readonly bytesPerToken: number; readonly outputTokens: number };
}

const assumed = { bytesPerToken: 3.5, outputTokens: 1500 };

/** What a run may cost in language models, before it is started; nothing is made or asked. */
export async function estimateRun(project: Project, host: Host, request: RunRequest): Promise<Estimate> {
  const { loaded, frozen } = await freezeFolder(host, request.environmentFolder);
  const { environment } = frozen;
  const chosen = chooseResearchers(request, await loadModelConfiguration(project.folder), environment);
  const blobs = memoryBlobs();
  const baseline = storeFiles(await readCandidate(loaded.folder, loaded.baseline), blobs);
  const asked = organizationNamed(request.organization.name).roles.filter((role) => roleNames.includes(role));
  const roles = asked.map((role): RoleEstimate => {
    const researcher = chosen.researchers[role] ?? chosen.researchers["*"] ?? "";
    const { costUsd, tokens } = chosen.callReservations[role] ?? { costUsd: 0, tokens: 0 };
    const promptBytes = promptBytesOf(role, environment, baseline, blobs, request.budget.trials);
    const isModel = researcher.startsWith(modelPrefix);
    const likely = isModel ? likelyUse(frozenOf(researcher, chosen.researcherSettings), promptBytes) : { costUsd: 0, tokens: 0 };
    return { role, researcher, promptBytes, worst: { costUsd, tokens }, likely, isModel };
  });
  const { trials, costUsd, tokens } = request.budget;
  const { callRounds: rounds } = callLimits;
  return {
    environment: environment.name,
    roles,
    trials,
    rounds,
    total: totalOf(roles, trials, rounds),
    caps: { costUsd, tokens },
    assumed,
  };
}

function totalOf(roles: readonly RoleEstimate[], trials: number | null, rounds: number): Estimate["total"] {
  if (trials === null || roles.length === 0) return null;
  const most = (of: keyof Use): number => trials * rounds * Math.max(...roles.map((role) => role.worst[of]));
  const mean = (of: keyof Use): number => (trials * roles.reduce((sum, role) => sum + role.likely[of], 0)) / roles.length;
  return {
    worst: { costUsd: most("costUsd"), tokens: most("tokens") },
    likely: { costUsd: mean("costUsd"), tokens: Math.round(mean("tokens")) },
  };
}

function likelyUse({ price, maxOutputTokens }: ReturnType<typeof frozenOf>, promptBytes: number): Use {
  const input = Math.ceil(promptBytes / assumed.bytesPerToken);
  const output = Math.min(assumed.outputTokens, maxOutputTokens);
  return { costUsd: price === null ? 0 : dollars(price, input, 0, output), tokens: input + output };
}

function promptBytesOf(
  role: string,
  environment: Environment,
  candidate: ManifestReference,
  blobs: Blobs,
  trialsLeft: number | null,
): number {
  const contract = roleNamed(role);
  const base = { trial: "t0", status: "keep", value: null, hypothesis: "", candidate } as const;
  const view = { role, base, failure: null, memory: [], notes: [], best: null, trialsLeft, activeMsLeft: null };
  const { system, user, answer } = contract.prompt(contract.document(view, environment, blobs));
  return [system, user, JSON.stringify(answer.schema)].reduce((total, text) => total + byteLength(text), 0);
}

function memoryBlobs(): Blobs {
  const kept = new Map<string, Uint8Array>();
  const ledger = openMemoryLedger();
  return {
    blob: (digest) => kept.get(digest) ?? new Uint8Array(),
    putBlob: (bytes) => {
      const blob = ledger.putBlob(bytes);
      kept.set(blob, bytes);
      return { blob, bytes: bytes.byteLength };
    },
  };
}

function storeFiles(candidate: Awaited<ReturnType<typeof readCandidate>>, blobs: Blobs): ManifestReference {
  for (const bytes of candidate.contents.values()) blobs.putBlob(bytes);
  return { ...blobs.putBlob(new TextEncoder().encode(canonicalJson(candidate.manifest))), manifest: true };
}
