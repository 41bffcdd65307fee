/** Longest text that a reason quotes. */
const quotedLength = 200;

/**
 * A finite number in a JSON document, or in the last line of JSON Lines; else why there is none. A key is names and list
 * positions joined by dots; a member whose whole name has dots in it comes first.
 */
export function numberInJson(text: string, { file, key }: { readonly file: string; readonly key: string }): number | string {
  let document: unknown;
  try {
    document = JSON.parse(/\.(jsonl|ndjson)$/i.test(file) ? lastLine(text) : text.replace(/^\ufeff/, ""));
  } catch (error) {
    return `it is no JSON: ${(error as Error).message.slice(0, quotedLength)}`;
  }
  const found = valueAt(document, key.split("."));
  if (typeof found === "number" && Number.isFinite(found)) return found;
  if (found === undefined) return `it has no \`${key}\`${namesIn(document)}`;
  return `\`${key}\` is no finite number: ${describe(found)}`;
}

/** In few words; a document of a candidate may be nested deeper than any function that writes it out can go. */
function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, quotedLength));
  if (typeof value !== "object" || value === null) return String(value);
  return Array.isArray(value) ? `a list of ${value.length}` : "an object";
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}

function valueAt(value: unknown, names: readonly string[]): unknown {
  if (names.length === 0) return value;
  if (Array.isArray(value)) {
    const [position, ...rest] = names;
    return /^(-?[1-9]\d{0,8}|0)$/.test(position ?? "") ? valueAt(value.at(Number(position)), rest) : undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  for (let count = names.length; count > 0; count--) {
    const name = names.slice(0, count).join(".");
    if (!Object.hasOwn(value, name)) continue;
    const found = valueAt((value as Record<string, unknown>)[name], names.slice(count));
    if (found !== undefined) return found;
  }
  return undefined;
}

function namesIn(document: unknown): string {
  if (typeof document !== "object" || document === null || Array.isArray(document)) return "";
  return ` (its names: ${Object.keys(document).slice(0, 10).join(", ").slice(0, quotedLength) || "none"})`;
}
