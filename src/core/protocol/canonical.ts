import { hash } from "node:crypto";

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
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      if (!Number.isFinite(value)) throw new NotCanonicalError(`a finite number was expected, ${value} was found`);
      return String(value);
    case "boolean":
      return String(value);
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? canonicalArray(value) : canonicalObject(value as Record<string, unknown>);
    default:
      throw new NotCanonicalError(`a JSON value was expected, a ${typeof value} was found`);
  }
}

function canonicalArray(value: readonly unknown[]): string {
  // Long lists of numbers are common, and have one form only.
  if (value.every(Number.isFinite)) return JSON.stringify(value);
  let text = "[";
  for (let index = 0; index < value.length; index++) {
    if (index > 0) text += ",";
    text += canonicalJson(value[index] ?? null);
  }
  return `${text}]`;
}

function canonicalObject(value: Record<string, unknown>): string {
  let text = "{";
  for (const key of Object.keys(value).sort()) {
    const member = value[key];
    if (member === undefined) continue;
    if (text.length > 1) text += ",";
    text += `${JSON.stringify(key)}:${canonicalJson(member)}`;
  }
  return `${text}}`;
}

/** SHA-256 of bytes, or of a string's UTF-8. */
export function digestOf(content: string | Uint8Array): Digest {
  return hash("sha256", content, "hex");
}

/** SHA-256 of a value's canonical JSON. */
export function digestOfValue(value: unknown): Digest {
  return digestOf(canonicalJson(value));
}
