import picomatch from "picomatch";
import type { CandidateManifest } from "../protocol/candidate.js";
import type { PlanProposal } from "../protocol/commands.js";
import type { Environment } from "../protocol/environment.js";
import type { Violation } from "../protocol/events.js";
import { trialId } from "../protocol/ids.js";

/** New texts by path, or null for a deletion. */
export type Files = ReadonlyMap<string, string | null>;

/** A replacement of one passage, which must occur exactly once. An empty `search` makes a file that is not there yet. */
export interface Edit {
  readonly path: string;
  readonly search: string;
  readonly replace: string;
}

/** What a proposer handed in, read and checked for shape alone. */
export interface Proposal extends PlanProposal {
  readonly files: Files;
  readonly edits: readonly Edit[];
}

const maxRespondsTo = 20;
const maxHypothesis = 4000;

/**
 * Reads a role's output: `plan: { hypothesis, expected_change?, responds_to? }`, and the change as whole files, `files:
 * { PATH: TEXT | null }` or `[{ path, content }]`, or as replacements, `edits: [{ path, search, replace }]`, or both.
 */
export function readProposal(output: unknown): Proposal | readonly Violation[] {
  if (!isRecord(output)) return [violation("not_an_object", "the answer must be one JSON object with the members plan and files", null)];
  const files = filesOf(output["files"]);
  const edits = editsOf(output["edits"]);
  const plan = readPlan(output["plan"]);
  const problems = [plan, files, edits].flatMap((each) => (isProblem(each) ? each : []));
  if (!isProblem(files) && !isProblem(edits) && files.size === 0 && edits.length === 0) problems.push(noChange);
  if (isProblem(plan) || isProblem(files) || isProblem(edits) || problems.length > 0) return problems;
  const read = { ...plan, files, edits };
  const both = read.edits.find((edit) => read.files.has(edit.path));
  if (both !== undefined) return [violation("edit_conflict", "a file is given whole and edited too: choose one", both.path)];
  return read;
}

const noChange = violation(
  "files_missing",
  "files must name at least one file with its full new text, or null to delete it, or edits one replacement",
  null,
);

/** Reads `{ hypothesis, expected_change?, responds_to? }`. */
export function readPlan(plan: unknown): PlanProposal | Violation[] {
  if (!isRecord(plan)) return [violation("plan_missing", "the member plan must be an object with a hypothesis", null)];
  const { hypothesis, expected_change: expected, responds_to: respondsTo = [] } = plan;
  if (typeof hypothesis !== "string" || hypothesis.trim() === "")
    return [violation("hypothesis_missing", "plan.hypothesis must be a text of a sentence or two", null)];
  // Small models like to write [""] for none.
  const named = Array.isArray(respondsTo) ? respondsTo.filter((id) => id !== "").slice(0, maxRespondsTo) : [];
  const wrong = named.find((id) => typeof id !== "string" || !trialId.safeParse(id).success);
  if (wrong !== undefined)
    return [
      violation(
        "unknown_trial",
        `plan.responds_to names trials, such as t3; ${typeof wrong === "string" ? JSON.stringify(wrong.slice(0, 80)) : `a value that is no text`} is none`,
        null,
      ),
    ];
  return {
    hypothesis: hypothesis.slice(0, maxHypothesis),
    expectedGain: typeof expected === "number" && Number.isFinite(expected) ? expected : null,
    respondsTo: named as string[],
    commitment: {},
  };
}

function filesOf(given: unknown): Files | Violation[] {
  if (given === undefined || given === null) return new Map();
  const listed = Array.isArray(given)
    ? given.map((each) => (isRecord(each) ? [each["path"], each["content"]] : [undefined, undefined]))
    : null;
  if (listed === null && !isRecord(given)) return [violation("files_missing", "files must be an object of texts by path, or a list", null)];
  const entries = listed ?? Object.entries(given as Record<string, unknown>);
  const problems: Violation[] = [];
  for (const [path, content] of entries) {
    const problem = typeof path === "string" ? textProblem(content) : "every file needs a path";
    if (problem !== null) problems.push(violation("file_not_text", problem, typeof path === "string" ? path : null));
  }
  return problems.length > 0 ? problems : new Map(entries as [string, string | null][]);
}

function textProblem(content: unknown): string | null {
  if (content !== null && typeof content !== "string") return "a file's new content must be a text, or null to delete it";
  return typeof content === "string" && content.includes("\u0000") ? "a file's text must not hold NUL characters" : null;
}

function editsOf(given: unknown): Edit[] | Violation[] {
  if (given === undefined || given === null) return [];
  if (!Array.isArray(given)) return [violation("edit_shape", "edits must be a list of { path, search, replace }", null)];
  const problems: Violation[] = [];
  for (const each of given) {
    const texts = isRecord(each) ? [each["path"], each["search"], each["replace"]] : [];
    if (texts.length !== 3 || texts.some((text) => typeof text !== "string" || text.includes("\u0000")))
      problems.push(violation("edit_shape", "every edit needs path, search and replace, three texts without NUL characters", null));
  }
  return problems.length > 0 ? problems.slice(0, 20) : (given as Edit[]).map(({ path, search, replace }) => ({ path, search, replace }));
}

/** Whether something could not be read: what is wrong with it then, at least one thing. */
function isProblem<T>(read: T | Violation[]): read is Violation[] {
  return Array.isArray(read) && read.length > 0 && read.every((each) => isRecord(each) && "code" in each);
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
