import { violation } from "../../core/harness/admission.js";
import { configurationOf, type OpenCall, trialOf } from "../../core/harness/state.js";
import { type ModelRecord, type Researcher, ResearcherFailedError, type RoleRequest } from "../../core/ports/researcher.js";
import type { Amount } from "../../core/protocol/budget.js";
import type { Answer, TimelessCommand } from "../../core/protocol/commands.js";
import { RefusedError } from "../../core/protocol/errors.js";
import { mapTexts } from "../roles/map-texts.js";
import { repairOf } from "../roles/prompt.js";
import { type AnyView, roleNamed } from "../roles/registry.js";
import type { Blobs } from "../roles/role.js";
import type { Run } from "./run.js";

const decoder = new TextDecoder();

/** What asks and records for one run. */
export interface RoleCallHost {
  readonly run: Run;
  readonly researchers: ReadonlyMap<string, Researcher>;
  /** Takes secrets out of everything that a researcher is shown. */
  readonly redact: (text: string) => string;
  /** False: nobody waits for the answer any more. */
  readonly wanted: (call: string) => boolean;
  readonly take: (command: TimelessCommand) => void;
}

/** Asks a researcher one round of an open call, and records what came or why nothing came. */
export async function performRoleCall(host: RoleCallHost, id: string, round: number, signal: AbortSignal): Promise<void> {
  const { run } = host;
  const call = run.state.calls[id];
  if (call === undefined) return;
  run.commit();
  const blobs: Blobs = { blob: (digest) => run.ledger.blob(digest), putBlob: (bytes) => run.putBlob(bytes) };
  const researcher = researcherNamed(host.researchers, call.researcher);
  const command = await asked(host, researcher, roleRequest(run, call, round, blobs, host.redact), signal, blobs);
  if (command === null || !host.wanted(id)) return;
  host.take(command);
  if (researcher.settled === undefined) return;
  // Lets a researcher drop what it kept for a crash, once its answer can no longer be lost.
  run.commit();
  await researcher.settled({ call: id, round });
}

async function asked(
  host: RoleCallHost,
  researcher: Researcher,
  request: RoleRequest,
  signal: AbortSignal,
  blobs: Blobs,
): Promise<TimelessCommand | null> {
  const { run } = host;
  const bill = (model: ModelRecord | null): { model: ModelRecord["use"] | null; traffic: ReturnType<Blobs["putBlob"]> | null } => ({
    model: model?.use ?? null,
    traffic: model === null ? null : blobs.putBlob(model.traffic),
  });
  try {
    const { raw, usage, model } = await researcher.answer(request, signal);
    const call = run.state.calls[request.call];
    if (call === undefined || !host.wanted(request.call)) return null;
    const answer = readSafely(call.role, raw, trialOf(run.state, call.base).candidate.blob, blobs);
    return { type: "answer_call", call: call.id, output: blobs.putBlob(raw), answer, usage, ...bill(model) };
  } catch (error) {
    if (!(error instanceof ResearcherFailedError)) throw error;
    const { kind, message, todo, usage, model } = error;
    return { type: "fail_call", call: request.call, kind, message, todo, usage, ...bill(model) };
  }
}

/** An answer that no reader stands (nested too deeply, for example) is one that cannot be read: it is billed and asked again. */
export function readSafely(role: string, raw: Uint8Array, base: string, blobs: Blobs): Answer {
  try {
    return roleNamed(role).read(raw, base, blobs);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { kind: "unreadable", violations: [violation("not_json", "the answer is nested too deeply to be read", null)] };
  }
}

/** The question of one round, from what the ledger holds alone: the same after a crash, and in a replay. */
export function roleRequest(
  run: Pick<Run, "state">,
  call: OpenCall,
  round: number,
  blobs: Blobs,
  redact: (text: string) => string,
): RoleRequest {
  const configuration = configurationOf(run.state);
  const role = roleNamed(call.role);
  const view = JSON.parse(decoder.decode(blobs.blob(call.view.blob))) as AnyView;
  const document = mapTexts(role.document(view, configuration.environment, blobs), redact);
  const answered = call.lastOutput === null ? null : redact(decoder.decode(blobs.blob(call.lastOutput.blob)));
  return {
    call: call.id,
    round,
    role: call.role,
    seed: call.seed,
    violations: call.violations,
    view: document,
    prompt: (room) => ({ ...role.prompt(document, room), repair: repairOf(answered, call.violations) }),
    allowance: allowanceOf(call, configuration.budget),
  };
}

/** What is left of the reservation, where there is a cap at all. */
function allowanceOf(call: OpenCall, caps: { readonly costUsd: number | null; readonly tokens: number | null }): Amount {
  const { reservation } = call;
  return {
    trials: reservation.trials,
    costUsd: caps.costUsd === null ? Number.POSITIVE_INFINITY : reservation.costUsd,
    tokens: caps.tokens === null ? Number.POSITIVE_INFINITY : reservation.tokens,
    computeMs: Number.POSITIVE_INFINITY,
  };
}

function researcherNamed(researchers: ReadonlyMap<string, Researcher>, name: string): Researcher {
  const researcher = researchers.get(name);
  if (researcher !== undefined) return researcher;
  throw new RefusedError({
    expected: `one of the researchers ${[...researchers.keys()].join(", ")}`,
    found: name,
    where: "run configuration",
  });
}
