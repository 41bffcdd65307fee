import type { FailureKind } from "../../../core/ports/researcher.js";
import { keyVariableOf } from "./providers.js";
import type { ModelSettings } from "./settings.js";
import type { Exchange, WireErrorKind } from "./traffic.js";

/** Why a request brought no answer, and whether the same request may fare better later. */
export interface ModelFailure {
  readonly kind: FailureKind;
  readonly retry: boolean;
  readonly message: string;
  readonly todo: string;
}

interface Row {
  /** None: any. */
  readonly status?: readonly number[];
  /** Must occur in the reply. */
  readonly says?: RegExp;
  readonly kind: FailureKind;
  readonly retry?: boolean;
  readonly todo: (settings: ModelSettings) => string;
}

const setKey = (settings: ModelSettings): string => {
  const variable = keyVariableOf(settings);
  return variable === null
    ? "Name the environment variable that holds the key as key_variable in trialist.config.yaml."
    : `Set ${variable} to a key that ${settings.provider} accepts for ${settings.model}.`;
};
const payQuota = (settings: ModelSettings): string => `Raise the quota or pay the balance at ${settings.provider}.`;
const nameModel = (settings: ModelSettings): string =>
  `Check the base URL, ${settings.baseUrl ?? "the provider's own"}: base_url in trialist.config.yaml counts at the next resume. The model's name, ${settings.model}, is frozen with the run: another one needs a new run.`;
const shorten = (): string =>
  "Prompts are frozen with the run: start a new one with a longer context, or with a smaller context_tokens in trialist.config.yaml.";
const later = (): string => "Wait until the provider answers again.";
const checkRequest = (): string =>
  "Read what the server said: `trialist show RUN CALL` has it all. Parameters are frozen with the run: other ones need a new run.";
const checkBaseUrl = (settings: ModelSettings): string =>
  `Check the base URL, ${settings.baseUrl ?? "the provider's own"}: base_url in trialist.config.yaml counts at the next resume.`;

/** A quota of the minute passes, though its message speaks of plan and billing too. */
const perMinute = "(?![\\s\\S]*per ?minute)";
const quotaWords = new RegExp(
  `^${perMinute}[\\s\\S]*(insufficient_quota|insufficient.balance|exceeded your current quota|credit balance|billing_(hard_limit|not_active)|perday)`,
  "i",
);
const keyWords = /api[ _]key[ _](not valid|invalid)|invalid[ _]api[ _]key|incorrect api key/i;
const contextWords =
  /context_length_exceeded|prompt is too long|maximum context length|exceeds? the (maximum|available|model's)[^"]{0,40}(number of tokens|context)|context (window|size|length)[^"]{0,40}exceed|exceed[^"]{0,60}context (window|size|length)|input token count[^"]{0,60}exceeds|request_too_large/i;
const modelWords = /model_not_found|unknown model|invalid model|model[^"]{0,120}(does not exist|not found)/i;

/** What a status means, from the most telling row to the least: the first that fits holds. */
const rows: readonly Row[] = [
  { status: [400, 402, 403, 429], says: quotaWords, kind: "quota_exhausted", todo: payQuota },
  { status: [402], kind: "quota_exhausted", todo: payQuota },
  { status: [400], says: keyWords, kind: "key_refused", todo: setKey },
  { status: [401, 403], kind: "key_refused", todo: setKey },
  { status: [400, 413, 422], says: contextWords, kind: "context_overflow", todo: shorten },
  { status: [413], kind: "context_overflow", todo: shorten },
  { status: [400, 422], says: modelWords, kind: "model_unknown", todo: nameModel },
  { status: [404], kind: "model_unknown", todo: nameModel },
  { status: [408, 409, 425, 429], kind: "unavailable", retry: true, todo: later },
];

const wireRows: Readonly<Record<WireErrorKind, Pick<ModelFailure, "retry"> & { readonly todo: (settings: ModelSettings) => string }>> = {
  no_connection: { retry: true, todo: checkBaseUrl },
  cut_off: { retry: true, todo: later },
  timed_out: {
    retry: true,
    todo: () => "Wait until the provider is faster, or raise timeout_seconds in trialist.config.yaml, which counts at the next resume.",
  },
  not_json: { retry: true, todo: checkBaseUrl },
  // The same would come again, and be paid for again.
  too_large: { retry: false, todo: checkBaseUrl },
  redirected: { retry: false, todo: (settings) => `${checkBaseUrl(settings)} Name the address that it redirects to.` },
  stopped: { retry: false, todo: later },
};

/** What the last exchange came to. `cause`: what the reader of a well-formed reply found wrong with it. */
export function failureOf(exchange: Exchange, cause: unknown, settings: ModelSettings): ModelFailure {
  const whom = `${settings.model} (${settings.provider})`;
  const { status, error } = exchange;
  if (error !== null && (status === null || status < 400)) {
    const { retry, todo } = wireRows[error.kind];
    return { kind: "unavailable", retry, message: `${whom}: ${error.message}`, todo: todo(settings) };
  }
  if (status === null || status < 400) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `${whom} answered with JSON that is no answer: ${why}: ${excerpt(exchange)}`;
    return { kind: "unavailable", retry: true, message, todo: checkBaseUrl(settings) };
  }
  const said = exchange.responseBody ?? "";
  const row = rows.find((each) => (each.status?.includes(status) ?? true) && (each.says?.test(said) ?? true)) ?? rowOf(status);
  const message = `${whom} answered with status ${status}: ${excerpt(exchange)}`;
  return { kind: row.kind, retry: row.retry ?? false, message, todo: row.todo(settings) };
}

function rowOf(status: number): Row {
  return status >= 500 ? { kind: "unavailable", retry: true, todo: later } : { kind: "request_refused", todo: checkRequest };
}

function excerpt(exchange: Exchange): string {
  const text = (exchange.responseBody ?? "").replace(/\s+/g, " ").trim();
  if (text === "") return "an empty reply";
  return text.length > 400 ? `${text.slice(0, 400)} …` : text;
}

/** Whether the provider may have billed an exchange that brought no answer: an error status costs nothing. */
export function mayBeBilled(exchange: Exchange): boolean {
  if (exchange.error?.kind === "no_connection" || exchange.error?.kind === "redirected") return false;
  return exchange.status === null || exchange.status < 400;
}
