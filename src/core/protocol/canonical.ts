import { createHash } from "node:crypto";

/** A SHA-256 in lower-case hexadecimal, 64 characters. Names a blob, a candidate, an environment. */
export type Digest = string;

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

/** A value has no canonical form: a non-finite number, a function, a cycle. */
export class NotCanonicalError extends Error {
  override readonly name = "NotCanonicalError";
}

/**
 * JSON with keys in code-unit order and no white space, so that equal values have equal bytes.
 * `undefined` members are left out, as JSON.stringify does; non-finite numbers are refused, because JSON would turn
 * them into null and a measurement would change in silence.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new NotCanonicalError(`a finite number was expected, ${value} was found`);
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item === undefined ? null : item)).join(",")}]`;
  if (typeof value === "object") return canonicalObject(value as Record<string, unknown>);
  throw new NotCanonicalError(`a JSON value was expected, a ${typeof value} was found`);
}

function canonicalObject(value: Record<string, unknown>): string {
  const members: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const member = value[key];
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`);
  }
  return `{${members.join(",")}}`;
}

/** SHA-256 of bytes, or of a string's UTF-8. */
export function digestOf(content: string | Uint8Array): Digest {
  return createHash("sha256").update(content).digest("hex");
}

/** SHA-256 of a value's canonical JSON. */
export function digestOfValue(value: unknown): Digest {
  return digestOf(canonicalJson(value));
}
