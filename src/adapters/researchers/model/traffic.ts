import { z } from "zod";
import { canonicalJson } from "../../../core/protocol/canonical.js";

/** What went wrong on the way, as opposed to what a server answered. */
const wireErrorKind = z.enum(["no_connection", "cut_off", "timed_out", "too_large", "redirected", "not_json", "stopped"]);
export type WireErrorKind = z.infer<typeof wireErrorKind>;

const headers = z.record(z.string(), z.string());
const exchange = z.strictObject({
  url: z.string(),
  method: z.string(),
  requestHeaders: headers,
  requestBody: z.string(),
  /** Null: no answer came. */
  status: z.number().int().nullable(),
  responseHeaders: headers,
  /** What was read of it, secrets removed; null: nothing. */
  responseBody: z.string().nullable(),
  startedAfterMs: z.number(),
  ms: z.number(),
  error: z.strictObject({ kind: wireErrorKind, message: z.string() }).nullable(),
});
export type Exchange = z.infer<typeof exchange>;

const traffic = z.strictObject({ protocol: z.literal("trialist/model-traffic@1"), exchanges: z.array(exchange) });

export class WireError extends Error {
  override readonly name = "WireError";
  constructor(
    readonly kind: WireErrorKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A replayed request differs from the recorded one, or comes after the last: our code asks differently now. */
export class ReplayDiffersError extends Error {
  override readonly name = "ReplayDiffersError";
}

export function trafficOf(exchanges: readonly Exchange[]): Uint8Array {
  return Buffer.from(canonicalJson({ protocol: "trialist/model-traffic@1", exchanges }));
}

/** @throws ZodError or SyntaxError for bytes that no record of traffic holds */
export function exchangesOf(bytes: Uint8Array): readonly Exchange[] {
  return traffic.parse(JSON.parse(Buffer.from(bytes).toString("utf8"))).exchanges;
}
