import picomatch from "picomatch";
import type { CandidateManifest } from "../protocol/candidate.js";
import type { Environment } from "../protocol/environment.js";
import type { Violation } from "../protocol/events.js";
import { trialId } from "../protocol/ids.js";

/** A proposed change of files: new text, or null for a deletion. */
export type Edits = ReadonlyMap<string, string | null>;

/** What a proposer handed in, read and checked for shape alone. */
export interface Proposal {
  readonly hypothesis: string;
  readonly expectedGain: number | null;
  readonly respondsTo: readonly string[];
  readonly commitment: Readonly<Record<string, unknown>>;
  readonly edits: Edits;
}

const maxHypothesis = 4000;

/** Reads a role's output `{ plan: { hypothesis, expected_change?, responds_to? }, files: { PATH: TEXT | null } }`. */
export function readProposal(output: unknown): Proposal | readonly Violation[] {
  if (!isRecord(output)) return [violation("not_an_object", "the answer must be one JSON object with the members plan and files", null)];
  const plan = output.plan;
  const files = output.files;
  const problems: Violation[] = [];
  if (!isRecord(plan)) problems.push(violation("plan_missing", "the member plan must be an object with a hypothesis", null));
  else if (typeof plan.hypothesis !== "string" || plan.hypothesis.trim() === "")
    problems.push(violation("hypothesis_missing", "plan.hypothesis must be a text of a sentence or two", null));
  if (!isRecord(files) || Object.keys(files).length === 0)
    problems.push(
      violation("files_missing", "the member files must name at least one file with its full new text, or null to delete it", null),
    );
  else problems.push(...fileProblems(files));
  if (problems.length > 0 || !isRecord(plan) || !isRecord(files)) return problems;
  const expected = plan.expected_change;
  return {
    hypothesis: String(plan.hypothesis).slice(0, maxHypothesis),
    expectedGain: typeof expected === "number" && Number.isFinite(expected) ? expected : null,
    respondsTo: Array.isArray(plan.responds_to)
      ? plan.responds_to.filter((id): id is string => typeof id === "string" && trialId.safeParse(id).success).slice(0, 20)
      : [],
    commitment: {},
    edits: new Map(Object.entries(files) as [string, string | null][]),
  };
}

function fileProblems(files: Record<string, unknown>): Violation[] {
  const problems: Violation[] = [];
  for (const [path, content] of Object.entries(files)) {
    if (content !== null && typeof content !== "string")
      problems.push(violation("file_not_text", "a file's new content must be a text, or null to delete it", path));
    else if (typeof content === "string" && content.includes("\u0000"))
      problems.push(violation("file_not_text", "a file's text must not hold NUL characters", path));
  }
  return problems;
}

/** Why these edits are not a candidate of this environment; empty when they are. */
export function surfaceViolations(surface: Environment["surface"], edited: readonly string[], manifest: CandidateManifest): Violation[] {
  const editable = picomatch([...surface.editable], { dot: true });
  const problems: Violation[] = [];
  for (const path of edited) {
    if (!isPlainPath(path))
      problems.push(violation("path_outside", "a path must be relative, with forward slashes, without . or .. parts", path));
    else if (!editable(path)) problems.push(violation("not_editable", `only ${surface.editable.join(", ")} may be changed`, path));
  }
  const bytes = manifest.files.reduce((total, file) => total + file.bytes, 0);
  if (bytes > surface.maxBytes)
    problems.push(violation("too_large", `the editable files hold ${bytes} bytes, at most ${surface.maxBytes} are allowed`, null));
  const paths = new Set(manifest.files.map((file) => file.path));
  for (const path of paths) {
    const parent = parentsOf(path).find((each) => paths.has(each));
    if (parent !== undefined) problems.push(violation("path_conflict", `${parent} is a file and cannot be a folder too`, path));
  }
  if (manifest.files.length === 0) problems.push(violation("empty", "a candidate needs at least one file", null));
  return problems;
}

function parentsOf(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_part, index) => parts.slice(0, index + 1).join("/"));
}

const encoder = new TextEncoder();

/** Whether a path stays inside the surface, whatever it is joined to. */
export function isPlainPath(path: string): boolean {
  if (path === "" || path.length > 1000 || path.startsWith("/") || path.includes("\\")) return false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  if (/[\u0000-\u001f\u007f]/.test(path)) return false;
  return path.split("/").every((part) => part !== "" && part !== "." && part !== ".." && encoder.encode(part).byteLength <= 255);
}

export function violation(code: string, message: string, path: string | null): Violation {
  return { code, message: message.slice(0, 2000), path: path === null ? null : path.slice(0, 1000) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
