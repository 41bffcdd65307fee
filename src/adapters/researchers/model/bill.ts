import type { LanguageModelV3Usage } from "@ai-sdk/provider";
import type { Amount } from "../../../core/protocol/budget.js";
import type { ModelUse, Price } from "../../../core/protocol/model-use.js";
import type { Droppable } from "./dropped-parameters.js";
import type { ModelSettings } from "./settings.js";
import { dollars, worstCaseOfRequest } from "./worst-case.js";

/** What one answer has used so far, over all its requests. */
export class Bill {
  readonly #tokens = { input: 0, cachedInput: 0, output: 0, reasoning: 0 };
  #costUsd = 0;
  #requests = 0;
  #billedAtWorst = 0;
  readonly #warnings = new Set<string>();

  constructor(
    private readonly settings: ModelSettings,
    private readonly price: Price | null,
    /** Of the prompt's texts and schema. */
    private readonly promptBytes: number,
  ) {}

  /** Counts a request that is about to start; null, or what of the allowance it could pass. */
  start(allowance: Amount): string | null {
    const worst = worstCaseOfRequest(this.settings.maxOutputTokens, this.price, this.promptBytes);
    const { costUsd, tokens } = this.amount();
    if (tokens + worst.tokens > allowance.tokens)
      return `the next request may use ${worst.tokens} tokens, ${Math.max(0, allowance.tokens - tokens)} are left`;
    // A sum of many small decimals may pass a cap by rounding alone.
    if (costUsd + worst.costUsd > allowance.costUsd * (1 + 1e-12))
      return `the next request may cost $${worst.costUsd.toFixed(6)}, $${Math.max(0, allowance.costUsd - costUsd).toFixed(6)} is left`;
    this.#requests += 1;
    return null;
  }

  /** Books what the provider told; false: it told nothing that can be. */
  told(usage: LanguageModelV3Usage, text: string): boolean {
    const [input, output] = [whole(usage.inputTokens.total), whole(usage.outputTokens.total)];
    // Nobody asks with no input, nor writes with no output: a server that says so has left it out.
    if (input === 0 || (output === 0 && text !== "")) return false;
    const cachedInput = Math.min(input, whole(usage.inputTokens.cacheRead));
    this.#book(input, cachedInput, output, Math.min(output, whole(usage.outputTokens.reasoning)));
    return true;
  }

  /** Books a request whose use nobody told. */
  worst(): void {
    const { tokens } = worstCaseOfRequest(this.settings.maxOutputTokens, null, this.promptBytes);
    this.#book(tokens - this.settings.maxOutputTokens, 0, this.settings.maxOutputTokens, 0);
    this.#billedAtWorst += 1;
  }

  warn(warning: string): void {
    if (this.#warnings.size < 20) this.#warnings.add(warning.slice(0, 500));
  }

  amount(): Amount {
    return { trials: 0, costUsd: this.#costUsd, tokens: this.#tokens.input + this.#tokens.output, computeMs: 0 };
  }

  /** `dropped`: what the model was asked without in the end. */
  use(latencyMs: number, dropped: ReadonlySet<Droppable>): ModelUse {
    const { provider, model, parameters, reasoningEffort, maxOutputTokens } = this.settings;
    const { temperature, topP } = parameters;
    return {
      provider,
      model,
      parameters: {
        ...(temperature === undefined || dropped.has("temperature") ? {} : { temperature }),
        ...(topP === undefined || dropped.has("topP") ? {} : { topP }),
        ...(reasoningEffort === null || dropped.has("reasoningEffort") ? {} : { reasoningEffort }),
        maxOutputTokens,
      },
      tokens: { ...this.#tokens },
      price: this.price,
      costUsd: this.#costUsd,
      latencyMs: Math.max(0, latencyMs),
      requests: this.#requests,
      billedAtWorst: this.#billedAtWorst,
      warnings: [...this.#warnings],
    };
  }

  #book(input: number, cachedInput: number, output: number, reasoning: number): void {
    this.#tokens.input += input;
    this.#tokens.cachedInput += cachedInput;
    this.#tokens.output += output;
    this.#tokens.reasoning += reasoning;
    if (this.price !== null) this.#costUsd += dollars(this.price, input, cachedInput, output);
  }
}

/** No answer uses more tokens: a server that says so tells nothing. */
const mostTokens = 1e9;

function whole(count: number | undefined): number {
  return count === undefined || !Number.isFinite(count) || count > mostTokens ? 0 : Math.max(0, Math.ceil(count));
}
