import type { ModelRecord } from "../../../core/ports/researcher.js";
import { type Amount, nothing } from "../../../core/protocol/budget.js";
import type { Price } from "../../../core/protocol/model-use.js";
import { Bill } from "../model/bill.js";
import { mayBeBilled } from "../model/failures.js";
import type { ModelSettings } from "../model/settings.js";
import { type Exchange, trafficOf } from "../model/traffic.js";
import { worstCaseOfRequest } from "../model/worst-case.js";
import type { Confined } from "./confine.js";
import { isObject, type WireFormat } from "./wire-formats.js";

/** What one request of an agent may use at worst, and has used. */
export class AgentBill {
  private readonly bytes: number;
  /** What Anthropic charges for input that it is told to cache, in multiples of the price of input. */
  private readonly cacheWriting: number;

  constructor(
    private readonly settings: ModelSettings,
    private readonly price: Price | null,
    private readonly format: WireFormat,
    private readonly request: Confined,
    /** As it is sent. */
    body: string,
  ) {
    this.bytes = Buffer.byteLength(body);
    this.cacheWriting = !body.includes('"cache_control"') ? 1 : /"ttl"\s*:\s*"1h"/.test(body) ? 2 : 1.25;
  }

  worst(): Amount {
    const { costUsd, tokens } = worstCaseOfRequest(this.request.maxOutputTokens, this.dearest(), this.bytes);
    return { ...nothing, costUsd, tokens };
  }

  /** Books what the reply told; what it left out, at worst. */
  settle(exchange: Exchange): { readonly usage: Amount; readonly model: ModelRecord } {
    const { settings, request, format } = this;
    const bill = new Bill({ ...settings, maxOutputTokens: request.maxOutputTokens }, this.price, this.bytes);
    bill.start({ trials: 0, costUsd: Number.POSITIVE_INFINITY, tokens: Number.POSITIVE_INFINITY, computeMs: 0 });
    for (const change of request.changes) bill.warn(change);
    const told = format.usage(documentsOf(exchange));
    const isBilled = mayBeBilled(exchange);
    let extraUsd = 0;
    if (isBilled && exchange.error === null && told !== null && bill.told(told, "said"))
      extraUsd = this.extra(told.inputTokens.cacheWrite ?? 0);
    else if (isBilled) {
      bill.worst();
      extraUsd = this.worst().costUsd - bill.amount().costUsd;
    }
    const amount = bill.amount();
    const costUsd = amount.costUsd + Math.max(0, extraUsd);
    const use = { ...bill.use(exchange.ms, new Set()), costUsd };
    return { usage: { ...amount, costUsd }, model: { use, traffic: trafficOf([exchange]) } };
  }

  private extra(written: number): number {
    return this.price === null ? 0 : (written * this.price.input * (this.cacheWriting - 1)) / 1e6;
  }

  private dearest(): Price | null {
    return this.price === null ? null : { ...this.price, input: this.price.input * this.cacheWriting };
  }
}

/** The documents of a reply, whether it came as one or as a stream of events. */
function documentsOf({ responseBody, responseHeaders }: Exchange): Readonly<Record<string, unknown>>[] {
  const text = responseBody ?? "";
  const isStream = /^text\/event-stream/.test(responseHeaders["content-type"] ?? "");
  const parts = isStream ? text.split(/\r?\n/).flatMap((line) => (line.startsWith("data:") ? [line.slice(5)] : [])) : [text];
  return parts.flatMap((part) => {
    try {
      const value: unknown = JSON.parse(part);
      return isObject(value) ? [value] : [];
    } catch {
      return [];
    }
  });
}
