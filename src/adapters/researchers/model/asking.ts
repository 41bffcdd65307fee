import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3GenerateResult } from "@ai-sdk/provider";
import { type FailureKind, type ModelRecord, ResearcherFailedError, type RoleRequest } from "../../../core/ports/researcher.js";
import type { Amount } from "../../../core/protocol/budget.js";
import type { Price } from "../../../core/protocol/model-use.js";
import { Bill } from "./bill.js";
import { type Droppable, refusedParameter } from "./dropped-parameters.js";
import { failureOf, type ModelFailure, mayBeBilled } from "./failures.js";
import type { ModelProvider } from "./provider.js";
import { RecordingFetch } from "./recording-fetch.js";
import { longestAskedWaitMs, type Sleep, waitMs } from "./retry.js";
import type { ModelSettings } from "./settings.js";
import { type Exchange, ReplayDiffersError, trafficOf } from "./traffic.js";

export interface AskingOptions {
  readonly provider: ModelProvider;
  readonly settings: ModelSettings;
  readonly key: string | null;
  readonly price: Price | null;
  readonly redact: (text: string) => string;
  readonly fetch: typeof globalThis.fetch;
  readonly sleep: Sleep;
  readonly now: () => number;
  /** Grows by what the model refuses; the researcher remembers it. */
  readonly dropped: Set<Droppable>;
  readonly asker: Asker;
  readonly question: Question;
  readonly signal: AbortSignal;
}

/** Who asks: what waiting is drawn from, and what may still be used. */
export type Asker = Pick<RoleRequest, "call" | "round" | "seed" | "allowance">;

/** What is asked. */
export interface Question {
  /** As the provider's code takes it, without what the model has refused. */
  readonly options: (without: ReadonlySet<Droppable>) => LanguageModelV3CallOptions;
  /** UTF-8 bytes of its texts and schemas: the bill's worst case rests on them. */
  readonly bytes: number;
}

/** What a model answered, with what it used. */
export interface Asked {
  readonly content: LanguageModelV3GenerateResult["content"];
  readonly finishReason: LanguageModelV3GenerateResult["finishReason"];
  readonly usage: Amount;
  readonly model: ModelRecord;
}

/** The next request could pass what the call may still use. */
class AllowanceError extends Error {
  override readonly name = "AllowanceError";
}

/** One answer of a model: requests are made until one brings it, within what the call may use. */
export class Asking {
  readonly #bill: Bill;
  readonly #wire: RecordingFetch;
  readonly #startedAt: number;
  /** What the latest request left out. Calls run side by side, so what is remembered may have grown since. */
  #without: ReadonlySet<Droppable> = new Set();

  constructor(private readonly options: AskingOptions) {
    const { settings, price, fetch, redact, now, asker } = options;
    this.#bill = new Bill(settings, price, options.question.bytes);
    this.#startedAt = now();
    const beforeRequest = (): void => {
      const passed = this.#bill.start(asker.allowance);
      if (passed !== null) throw new AllowanceError(passed);
    };
    this.#wire = new RecordingFetch({ fetch, redact, timeoutMs: settings.timeoutMs, now, beforeRequest });
  }

  /** @throws ResearcherFailedError when no answer came */
  async answer(): Promise<Asked> {
    const { provider, settings, key, signal } = this.options;
    const model = await provider.load(settings, key, this.#wire.fetch);
    for (let failed = 0; ; ) {
      signal.throwIfAborted();
      const asked = await this.#ask(model);
      if ("content" in asked) return asked;
      if (asked.again) continue;
      failed += 1;
      await this.#wait(asked.failure, asked.last, failed);
    }
  }

  /** One try. @throws ResearcherFailedError where another could not fare better */
  async #ask(model: LanguageModelV3): Promise<Asked | { again: true } | { again: false; failure: ModelFailure; last: Exchange }> {
    const { settings, question, dropped, signal } = this.options;
    const before = this.#wire.exchanges.length;
    this.#without = new Set(dropped);
    try {
      const result = await model.doGenerate({ ...question.options(this.#without), abortSignal: signal });
      return this.#answered(result, this.#wire.exchanges.slice(before));
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof ReplayDiffersError) throw cause;
      const exchanges = this.#wire.exchanges.slice(before);
      for (const exchange of exchanges) if (mayBeBilled(exchange)) this.#bill.worst();
      if (cause instanceof AllowanceError) throw this.#failed("budget", cause.message, "", cause);
      const last = exchanges.at(-1);
      if (last === undefined) throw this.#failed("request_refused", `the request could not be made: ${String(cause)}`, "", cause);
      const failure = failureOf(last, cause, settings);
      const refused = failure.kind === "request_refused" ? refusedParameter(last, settings, this.#without) : null;
      if (refused !== null) {
        dropped.add(refused.what);
        this.#bill.warn(refused.warning);
        return { again: true };
      }
      if (!failure.retry) throw this.#failed(failure.kind, failure.message, failure.todo, cause);
      return { again: false, failure, last };
    }
  }

  #answered(result: LanguageModelV3GenerateResult, exchanges: readonly Exchange[]): Asked {
    const text = result.content.map((part) => (part.type === "text" ? part.text : part.type === "tool-call" ? part.input : "")).join("");
    if (!this.#bill.told(result.usage, text)) {
      for (const _ of exchanges) this.#bill.worst();
      this.#bill.warn("the server did not tell what the answer used: the most that it can be is billed");
    }
    for (const warning of result.warnings) this.#bill.warn(warningText(warning));
    const { unified } = result.finishReason;
    if (unified === "length") this.#bill.warn(`the answer was cut at ${this.options.settings.maxOutputTokens} tokens (max_output_tokens)`);
    if (unified === "content-filter") this.#bill.warn("the model refused to answer, or a filter kept its answer back");
    return { content: result.content, finishReason: result.finishReason, usage: this.#bill.amount(), model: this.#record() };
  }

  async #wait(failure: ModelFailure, last: Exchange, failed: number): Promise<void> {
    const { settings, asker, sleep, now, signal } = this.options;
    if (failed > settings.retries) {
      const tries = failed === 1 ? "1 try" : `${failed} tries`;
      throw this.#failed(failure.kind, `${failure.message} (after ${tries})`, failure.todo);
    }
    const { ms, asked } = waitMs(last, failed, asker, now());
    if (asked && ms > longestAskedWaitMs) {
      const message = `${failure.message} (it asks to wait ${Math.ceil(ms / 1000)} s, at most ${longestAskedWaitMs / 1000} s are waited)`;
      throw this.#failed(failure.kind, message, failure.todo);
    }
    await sleep(ms, signal);
  }

  #failed(kind: FailureKind, message: string, todo: string, cause?: unknown): ResearcherFailedError {
    return new ResearcherFailedError(kind, this.options.redact(message), this.#bill.amount(), { cause, todo, model: this.#record() });
  }

  #record(): ModelRecord {
    return { use: this.#bill.use(this.options.now() - this.#startedAt, this.#without), traffic: trafficOf(this.#wire.exchanges) };
  }
}

function warningText(warning: LanguageModelV3GenerateResult["warnings"][number]): string {
  if (warning.type === "other") return warning.message;
  return `${warning.type} ${warning.feature}${warning.details === undefined ? "" : `: ${warning.details}`}`;
}
