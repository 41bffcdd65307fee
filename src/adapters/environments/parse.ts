import { isMap, isScalar, LineCounter, parseDocument, type Document } from "yaml";
import type { z } from "zod";
import { type Contract, contract, knownKeys, laterKeys } from "./contract.js";
import { closest, EnvironmentInvalidError, type Problem } from "./problems.js";

export interface ParsedContract {
  readonly contract: Contract;
  /** Where a member stands, for problems that only the files show. */
  readonly at: (path: readonly (string | number)[]) => { readonly line: number; readonly column: number } | null;
}

/** Reads the text of `environment.yaml`. @throws EnvironmentInvalidError with every problem at its line */
export function parseContract(text: string, file: string): ParsedContract {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true });
  if (document.errors.length > 0) {
    throw new EnvironmentInvalidError(
      document.errors.map((error) => ({ file, line: error.linePos?.[0].line ?? null, column: error.linePos?.[0].col ?? null, message: error.message.split("\n")[0] ?? error.message })),
    );
  }
  const at = (path: readonly (string | number)[]): { line: number; column: number } | null => positionOf(document, lines, path);
  const parsed = contract.safeParse(document.toJS({ maxAliasCount: 20 }) ?? {});
  if (parsed.success) return { contract: parsed.data, at };
  throw new EnvironmentInvalidError(parsed.error.issues.flatMap((issue) => problemsOf(issue, file, at)));
}

function problemsOf(issue: z.core.$ZodIssue, file: string, at: ParsedContract["at"]): Problem[] {
  const path = issue.path.map((part) => (typeof part === "symbol" ? String(part) : part));
  const where = path.length === 0 ? "the environment" : path.join(".");
  const problem = (message: string, place: readonly (string | number)[]): Problem => ({ file, line: at(place)?.line ?? null, column: at(place)?.column ?? null, message });
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => problem(unknownKey(key, where), [...path, key]));
  if (issue.code === "invalid_union") {
    // The branch that came furthest says most: a list of all branches helps nobody.
    const branch = [...issue.errors].sort((a, b) => a.length - b.length)[0];
    if (branch !== undefined && branch.length > 0) return branch.flatMap((inner) => problemsOf({ ...inner, path: [...issue.path, ...inner.path] } as z.core.$ZodIssue, file, at));
  }
  if (issue.code === "invalid_value") return [problem(`${where}: expected one of ${issue.values.map(String).join(", ")}`, path)];
  return [problem(`${where}: ${issue.message}`, path)];
}

function unknownKey(key: string, where: string): string {
  if (laterKeys.includes(key)) return `${key} is part of the contract that this version of trialist does not carry out yet; remove it, since ignoring it would change what is measured`;
  const near = closest(key, knownKeys);
  return `${where} has no key ${JSON.stringify(key)}${near === null ? "" : `; did you mean ${JSON.stringify(near)}?`}`;
}

/** The place of a member; of its key where it is a member of a map; of the nearest parent when it is missing. */
function positionOf(document: Document, lines: LineCounter, path: readonly (string | number)[]): { line: number; column: number } | null {
  for (let length = path.length; length >= 0; length--) {
    const parent = length === 0 ? document.contents : document.getIn(path.slice(0, length - 1), true);
    if (length > 0 && isMap(parent)) {
      const pair = parent.items.find((item) => isScalar(item.key) && item.key.value === path[length - 1]);
      if (pair !== undefined && isScalar(pair.key) && pair.key.range) return place(lines, pair.key.range[0]);
    }
    const node = (length === 0 ? document.contents : document.getIn(path.slice(0, length), true)) as { range?: [number, number, number] } | null | undefined;
    if (node?.range) return place(lines, node.range[0]);
  }
  return null;
}

function place(lines: LineCounter, offset: number): { line: number; column: number } {
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}
