import type { Parameter } from "./environment.js";

/** A number as programs and configuration files write it. */
const literal = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/;

/** Where a parameter stands in its file. */
export interface ParameterPlace {
  /** As it is written. */
  readonly text: string;
  readonly value: number;
  /** UTF-16 offset of the number. */
  readonly start: number;
}

/** Finds a declared number; a reason in words where it is not there once, or no number. */
export function findParameter({ after }: Pick<Parameter, "after">, content: string): ParameterPlace | { readonly reason: string } {
  const first = content.indexOf(after);
  if (first === -1) return { reason: `the text ${JSON.stringify(after)} is not in it` };
  if (content.indexOf(after, first + 1) !== -1) return { reason: `the text ${JSON.stringify(after)} is in it more than once` };
  const start = first + after.length;
  const text = literal.exec(content.slice(start, start + 64))?.[0];
  if (text === undefined) return { reason: `no number follows ${JSON.stringify(after)}` };
  return { text, value: Number(text), start };
}

/** The declared numbers of a candidate, and its files with all of them blanked: equal blanks are one program. */
export function readParameters(
  parameters: readonly Parameter[],
  files: ReadonlyMap<string, string>,
): { readonly values: Record<string, ParameterPlace>; readonly blanked: ReadonlyMap<string, string> } | null {
  const values: Record<string, ParameterPlace> = {};
  const holes = new Map<string, ParameterPlace[]>();
  for (const parameter of parameters) {
    const content = files.get(parameter.file);
    const place = content === undefined ? null : findParameter(parameter, content);
    if (place === null || "reason" in place) return null;
    values[parameter.name] = place;
    holes.set(parameter.file, [...(holes.get(parameter.file) ?? []), place]);
  }
  const blanked = new Map([...files].map(([path, content]) => [path, blank(content, holes.get(path) ?? [])]));
  return { values, blanked };
}

function blank(content: string, places: readonly ParameterPlace[]): string {
  return [...places]
    .sort((a, b) => b.start - a.start)
    .reduce((text, { start, text: number }) => `${text.slice(0, start)}\0${text.slice(start + number.length)}`, content);
}
