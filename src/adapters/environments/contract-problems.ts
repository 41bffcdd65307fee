import type { z } from "zod";
import { contract } from "./contract.js";
import type { Problem } from "./problems.js";
import { didYouMean } from "./suggestions.js";
import type { DocumentPath, YamlSource } from "./yaml-source.js";

type Issue = z.core.$ZodIssue;
type Schema = z.core.$ZodType;

interface AnyDefinition {
  readonly type: string;
  readonly innerType?: Schema;
  readonly in?: Schema;
  readonly element?: Schema;
  readonly valueType?: Schema;
  readonly shape?: Readonly<Record<string, Schema>>;
  readonly options?: readonly Schema[];
}

/** Looks through wrappers (optional, default, transform) at what a schema really describes. */
function unwrap(schema: Schema): AnyDefinition {
  const definition = schema._zod.def as unknown as AnyDefinition;
  const inner = definition.innerType ?? (definition.type === "pipe" ? definition.in : undefined);
  return inner === undefined ? definition : unwrap(inner);
}

/** Keys that the schema knows at a path of the document; empty where any key or none is allowed. */
function knownKeys(schema: Schema, path: DocumentPath): string[] {
  const definition = unwrap(schema);
  if (definition.type === "union") return [...new Set((definition.options ?? []).flatMap((option) => knownKeys(option, path)))];
  const [step, ...rest] = path;
  if (step === undefined) return Object.keys(definition.shape ?? {});
  const next = definition.shape?.[String(step)] ?? definition.element ?? definition.valueType;
  return next === undefined ? [] : knownKeys(next, rest);
}

function valueAt(value: unknown, path: DocumentPath): unknown {
  return path.reduce<unknown>((inner, step) => (inner as Record<PropertyKey, unknown> | undefined | null)?.[step], value);
}

/** A value in the words of an error: short, and with its type where that is what is wrong. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "an empty value";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object") return `a mapping with the keys ${Object.keys(value).slice(0, 8).join(", ") || "(none)"}`;
  const text = JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

const typeNames: Record<string, string> = {
  object: "a mapping",
  record: "a mapping",
  array: "a list",
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
};

/** Name of a place in the document: `stages[1].limits.wall`. */
function dotted(path: DocumentPath): string {
  return path.reduce<string>(
    (text, step) => (typeof step === "number" ? `${text}[${step}]` : text === "" ? String(step) : `${text}.${String(step)}`),
    "",
  );
}

function unknownKeys(source: YamlSource, path: DocumentPath, keys: readonly string[]): Problem[] {
  const known = knownKeys(contract, path);
  const where = path.length === 0 ? "" : ` in \`${dotted(path)}\``;
  return keys.map((key) => ({
    file: source.file,
    ...source.placeOfKey(path, key),
    what: `unknown key \`${key}\`${where}`,
    expected: `one of ${known.join(", ")}`,
    found: key,
    todo: didYouMean(key, known, "remove the key, or look it up in the documentation of environment.yaml"),
  }));
}

function at(source: YamlSource, path: DocumentPath, words: Pick<Problem, "what" | "expected" | "found" | "todo">): Problem {
  return { file: source.file, ...source.placeOfValue(path), ...words };
}

function expectationOf(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return typeNames[issue.expected] ?? issue.expected;
    case "invalid_value":
      return issue.values.length === 1 && issue.message !== undefined && !issue.message.startsWith("Invalid")
        ? issue.message
        : `one of ${issue.values.map(String).join(", ")}`;
    case "too_small":
      return issue.message.startsWith("Too small")
        ? `${issue.inclusive === false ? "more than" : "at least"} ${String(issue.minimum)}`
        : issue.message;
    case "too_big":
      return issue.message.startsWith("Too big")
        ? `${issue.inclusive === false ? "less than" : "at most"} ${String(issue.maximum)}`
        : issue.message;
    default:
      return issue.message;
  }
}

function todoOf(issue: Issue, value: unknown, key: string): string {
  if (issue.code === "custom") return String(issue.params?.["todo"] ?? "correct the value");
  if (value === undefined) return `add \`${key}\``;
  if (issue.code === "invalid_value") return didYouMean(String(value), issue.values.map(String), "use one of them");
  if (issue.code === "invalid_type" && issue.expected === "array")
    return `write a list: ${key}: [${typeof value === "string" ? value : "…"}]`;
  if (issue.code === "invalid_type" && issue.expected === "string") return `put it in quotes: ${key}: "${String(value)}"`;
  return "correct the value";
}

/** Of a union, the branch that the author most likely meant: the mapping with the fewest complaints, else none. */
function likelyBranch(issue: z.core.$ZodIssueInvalidUnion, value: unknown): readonly Issue[] | null {
  if (typeof value !== "object" || value === null) return null;
  const branches = issue.errors.filter((errors) => !errors.some((error) => error.path.length === 0 && error.code !== "unrecognized_keys"));
  return [...branches].sort((a, b) => weight(a) - weight(b))[0] ?? null;
}

function weight(issues: readonly Issue[]): number {
  return issues.reduce((sum, issue) => sum + (issue.code === "unrecognized_keys" ? issue.keys.length : 1), 0);
}

/** One complaint of the schema as problems with their place in the file. */
export function problemsOfIssue(source: YamlSource, value: unknown, issue: Issue, base: DocumentPath = []): Problem[] {
  const path = [...base, ...issue.path];
  const found = valueAt(value, path);
  if (issue.code === "unrecognized_keys") return unknownKeys(source, path, issue.keys);
  if (issue.code === "invalid_union") {
    const branch = likelyBranch(issue, found);
    if (branch !== null) return branch.flatMap((inner) => problemsOfIssue(source, value, inner, path));
  }
  if (issue.code === "invalid_key" || issue.code === "invalid_element") {
    return issue.issues.flatMap((inner) => problemsOfIssue(source, value, { ...inner, path: [] } as Issue, path));
  }
  const key = String(path.at(-1) ?? "environment.yaml");
  const place = path.length === 0 ? "the file" : `\`${dotted(path)}\``;
  const what = found === undefined ? `${place} is missing` : `${place} has a value that does not fit`;
  return [at(source, path, { what, expected: expectationOf(issue), found: describeValue(found), todo: todoOf(issue, found, key) })];
}

/** The same value without the keys that the schema does not know, so that the rest of the file can be checked too. */
export function withoutUnknownKeys(value: unknown, issues: readonly Issue[]): unknown {
  const copy = structuredClone(value);
  for (const issue of issues) {
    if (issue.code !== "unrecognized_keys") continue;
    const parent = valueAt(copy, issue.path) as Record<string, unknown>;
    for (const key of issue.keys) delete parent[key];
  }
  return copy;
}
