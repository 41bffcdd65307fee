/** A JSON value with every text of it mapped; names of members stay. */
export function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === "string") return map(value);
  if (Array.isArray(value)) return value.map((each) => mapTexts(each, map));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapTexts(each, map)]));
}
