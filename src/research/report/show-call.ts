import type { StoredEvent } from "../../core/ports/ledger.js";
import { TrialistError } from "../../core/protocol/errors.js";
import { type EventData, parseEvent, type StoredRunEvent } from "../../core/protocol/events.js";
import type { BlobReference } from "../../core/protocol/ids.js";
import type { ModelUse } from "../../core/protocol/model-use.js";
import { decode, kept, type ReadBlob } from "./evidence.js";
import { printable } from "./hostile-text.js";
import { money } from "./numbers.js";

/** The run has no such call and no such session. */
export class UnknownCallError extends TrialistError {
  readonly kind = "usage";
}

/** Whether a name is one of a role call or of a session: `c5`, `s1`. */
export function isCallOrSession(id: string): boolean {
  return /^[cs][1-9]\d{0,8}$/.test(id);
}

/** What is on record of one role call or session, as JSON: its events, with the texts of the blobs that they name. */
export function callRecord(events: Iterable<StoredEvent>, id: string, blob: ReadBlob): unknown[] {
  const found = [...events].filter((event) => mentions(event.data, id)).map(parseEvent);
  if (found.length === 0)
    throw new UnknownCallError({
      expected: "a call or a session of this run",
      found: JSON.stringify(id),
      todo: "Calls are c1, c2 …, sessions s1, s2 …",
    });
  return found.map(({ sequence, at, type, data }) => ({ sequence, at, type, data, texts: textsOf(data, blob) }));
}

function mentions(data: unknown, id: string): boolean {
  if (typeof data !== "object" || data === null) return false;
  const named = "call" in data ? data.call : "session" in data ? data.session : null;
  return named === id;
}

/** Blobs by the member that names them; those that are no longer kept are left out. */
function textsOf(data: StoredRunEvent["data"], blob: ReadBlob): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(data)) {
    const reference = value as BlobReference | null;
    if (typeof reference !== "object" || reference === null || typeof reference.blob !== "string") continue;
    const content = kept(blob, reference.blob);
    if (content !== null) texts[name] = decode(content);
  }
  return texts;
}

/** The text of `trialist show RUN c5` or `s1`: who was asked, exactly what went out and came back, and what it cost. */
export function showCall(events: Iterable<StoredEvent>, id: string, blob: ReadBlob): string {
  const record = callRecord(events, id, blob) as (StoredRunEvent & { readonly texts: Readonly<Record<string, string>> })[];
  return `${record.map((event) => linesOf(event, event.texts).map(printable).join("\n")).join("\n\n")}\n`;
}

function linesOf(event: StoredRunEvent, texts: Readonly<Record<string, string>>): string[] {
  const head = `${event.sequence}  ${event.type}`;
  switch (event.type) {
    case "call.requested":
      return [
        `${head}  ${event.data.role} from ${event.data.base}, asked of ${event.data.researcher}`,
        ...titled("What it was shown", texts["view"]),
      ];
    case "call.answered":
      return [
        `${head}  round ${event.data.round}`,
        ...askedLines(event.data),
        ...wireLines(texts["traffic"]),
        ...titled("Answer", texts["output"]),
      ];
    case "call.refused":
      return [
        `${head}  round ${event.data.round}`,
        ...event.data.violations.map(({ code, message, path }) => `${code}: ${path === null ? "" : `${path}: `}${message}`),
        ...askedLines(event.data),
        ...wireLines(texts["traffic"]),
        ...titled("Answer", texts["output"]),
      ];
    case "call.failed":
      return [
        `${head}  round ${event.data.round}, ${event.data.kind}: ${event.data.message}`,
        ...askedLines(event.data),
        ...wireLines(texts["traffic"]),
      ];
    case "session.turn_ended":
      return [`${head}  turn ${event.data.turn}`, ...askedLines(event.data), ...wireLines(texts["traffic"])];
    case "session.tool_called":
      return [`${head}  ${event.data.tool}`, ...titled("Call and result", texts["traffic"])];
    default:
      return [`${head}  ${JSON.stringify(event.data)}`];
  }
}

function askedLines({ model, usage }: Pick<EventData<"call.answered">, "model" | "usage">): string[] {
  return model === null
    ? [`used ${usage.computeMs} ms of CPU time`]
    : [modelLine(model), ...model.warnings.map((warning) => `warning: ${warning}`)];
}

function modelLine({ provider, model, parameters, tokens, costUsd, requests, billedAtWorst, latencyMs }: ModelUse): string {
  const worst = billedAtWorst === 0 ? "" : `, ${billedAtWorst} of them billed at the most that they can have used`;
  const used = `${tokens.input} tokens in (${tokens.cachedInput} cached), ${tokens.output} out (${tokens.reasoning} reasoning), ${money(costUsd)}`;
  return `${provider} ${model} ${JSON.stringify(parameters)}: ${used}, ${Math.round(latencyMs)} ms, ${requests} requests${worst}`;
}

/** What went over the wire, as it was sent: the exact prompt is in there. */
function wireLines(traffic: string | undefined): string[] {
  if (traffic === undefined) return [];
  const { exchanges = [] } = JSON.parse(traffic) as { exchanges?: readonly Readonly<Record<string, unknown>>[] };
  return exchanges.flatMap(({ method, url, requestBody, status, responseBody, error }) => [
    ...titled(`${String(method)} ${String(url)}`, String(requestBody)),
    ...titled(error === null ? `Status ${String(status)}` : `Failed: ${JSON.stringify(error)}`, String(responseBody ?? "")),
  ]);
}

function titled(title: string, text: string | undefined): string[] {
  return text === undefined ? [] : [`── ${title}`, text];
}
