import type { RolePrompt } from "../../core/ports/researcher.js";
import type { Environment } from "../../core/protocol/environment.js";
import type { ParameterDocument } from "./parameters.js";
import { assemble, assembledBytes, byteLength, filesThatFit, newestThatFit, repairBudget, type Section, shrunk } from "./prompt.js";

/** What a proposer is handed: the view of the role with its contents filled in. */
export interface ProposalDocument {
  readonly environment: {
    readonly name: string;
    readonly description: string;
    readonly knowledge: Environment["knowledge"];
    readonly metrics: readonly { readonly name: string; readonly direction: string }[];
    readonly gates: readonly unknown[];
    readonly editable: readonly string[];
    readonly maxBytes: number;
    readonly limits: readonly {
      readonly stage: string;
      readonly wallMs: number;
      readonly memoryBytes: number;
      readonly cpus: number;
      readonly gpus?: number;
    }[];
  };
  readonly base: {
    readonly trial: string;
    readonly status: string | null;
    readonly value: number | null;
    readonly hypothesis: string;
    readonly files: Readonly<Record<string, string>>;
  };
  readonly failure: { readonly status: string; readonly stage: string; readonly reason: string; readonly output: string } | null;
  readonly memory: readonly { readonly trial: string; readonly hypothesis: string; readonly status: string; readonly value: number }[];
  readonly best: { readonly trial: string; readonly value: number } | null;
  /** For optimizers alone: where the environment declares numbers. */
  readonly parameters?: ParameterDocument;
  readonly notes: readonly string[];
  readonly steering: { readonly held: readonly string[]; readonly pinned: readonly string[] };
  readonly trialsLeft: number | null;
  readonly activeMsLeft: number | null;
}

/** Bytes of each section. What is dropped first is in the builder below, and in the guide. */
const budgets = {
  environment: { title: "What is studied", bytes: 12 * 1024 },
  rules: { title: "Rules of measurement", bytes: 4 * 1024 },
  knowledge: { title: "What is known", bytes: 8 * 1024 },
  files: { title: "The files you start from", bytes: 48 * 1024 },
  result: { title: "What they gave", bytes: 8 * 1024 },
  memory: { title: "What was tried", bytes: 8 * 1024 },
  notes: { title: "What the operator wants you to know", bytes: 4 * 1024 },
  state: { title: "Where the run stands", bytes: 1024 },
} as const;

const format = `Answer with one JSON object and nothing else:
{"plan": {"hypothesis": "one or two sentences: what you change and why it should help",
          "expected_change": number or null, the gain of the first metric that you expect, in its unit, positive is better,
          "responds_to": ["t3"], the trials that you build on or answer, may be empty},
 "files": [{"path": "...", "content": "the whole new text, or null to delete the file"}],
 "edits": [{"path": "...", "search": "a passage copied exactly, which occurs once", "replace": "its new text"}]}
Give a file whole under "files" or change it by "edits", never both; leave the other list empty. Change editable files only.
The files are run as they are: no placeholders, nothing left out.`;

const nullable = (type: string): Readonly<Record<string, unknown>> => ({ type: [type, "null"] });
const object = (properties: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

const schema = object({
  plan: object({
    hypothesis: { type: "string" },
    expected_change: nullable("number"),
    responds_to: { type: "array", items: { type: "string" } },
  }),
  files: { type: "array", items: object({ path: { type: "string" }, content: nullable("string") }) },
  edits: { type: "array", items: object({ path: { type: "string" }, search: { type: "string" }, replace: { type: "string" } }) },
});

/** Longest task of a role, in bytes. */
const taskBytes = 2048;

/**
 * Most bytes of a proposer's prompt in this environment, repair and schema included: what a question reserves rests on
 * it. What the environment says itself is counted as it is, the rest at its budget.
 */
export function proposalPromptBytes(environment: Environment): number {
  const own = {
    ...budgets,
    environment: bounded(budgets.environment, environmentText(environment)),
    knowledge: bounded(budgets.knowledge, knowledgeText(environment.knowledge)),
    files: filesBudget(environment.surface.maxBytes),
  };
  const fixed = taskBytes + byteLength(format) + byteLength(JSON.stringify(schema)) + repairBudget.answer + repairBudget.message + 64;
  return fixed + assembledBytes(Object.values(own));
}

/** Files hold no more than the surface allows; the rest is room for their paths. */
function filesBudget(maxBytes: number): { title: string; bytes: number } {
  return { ...budgets.files, bytes: Math.min(budgets.files.bytes, maxBytes + 8 * 1024) };
}

function bounded(section: { readonly title: string; readonly bytes: number }, text: string): { title: string; bytes: number } {
  return { ...section, bytes: Math.min(section.bytes, byteLength(text)) };
}

function environmentText({ name, description }: Pick<Environment, "name" | "description">): string {
  return `${name}\n\n${description}`;
}

function knowledgeText(knowledge: Environment["knowledge"]): string {
  return knowledge.map(({ path, text }) => `## ${path}\n${text}`).join("\n\n");
}

/** The words for one proposal. `task`: what this role is for, at most 2,048 bytes. */
export function proposalPrompt(task: string, document: ProposalDocument, room = Number.POSITIVE_INFINITY): Omit<RolePrompt, "repair"> {
  const system = `${task}\n\n${format}`;
  return {
    system,
    user: assemble(shrunk(sectionsOf(document), room - byteLength(system))),
    answer: { name: "proposal", schema },
  };
}

function sectionsOf(document: ProposalDocument): Section[] {
  const { environment, base } = document;
  const files = filesBudget(environment.maxBytes);
  return [
    { ...budgets.environment, drop: "end", text: environmentText(environment) },
    { ...budgets.rules, drop: "end", text: rulesOf(environment) },
    { ...budgets.knowledge, drop: "end", text: knowledgeText(environment.knowledge) },
    { ...files, drop: "middle", text: filesThatFit(base.files, files.bytes) },
    { ...budgets.result, drop: "middle", text: resultOf(document) },
    { ...budgets.memory, drop: "middle", text: newestThatFit(document.memory.map(remembered), budgets.memory.bytes) },
    {
      ...budgets.notes,
      drop: "middle",
      text: newestThatFit(
        document.notes.map((note) => `- ${note}`),
        budgets.notes.bytes,
      ),
    },
    { ...budgets.state, drop: "end", text: stateOf(document) },
  ];
}

function rulesOf({ metrics, gates, editable, maxBytes, limits }: ProposalDocument["environment"]): string {
  const lines = [
    `Metrics, the first decides: ${metrics.map(({ name, direction }) => `${name} (${direction})`).join(", ")}`,
    `Editable: ${editable.join(", ")}; at most ${maxBytes} bytes in all`,
    ...limits.map(
      ({ stage, wallMs, memoryBytes, cpus, gpus }) =>
        `Stage ${stage}: at most ${wallMs / 1000} s, ${Math.round(memoryBytes / 2 ** 20)} MiB of memory, ${cpus} CPUs, ${gpus === undefined ? "" : `${gpus} GPUs, `}no network`,
    ),
  ];
  return [...lines, ...gates.map((gate) => `Gate: ${JSON.stringify(gate)}`)].join("\n");
}

function resultOf({ base, failure }: ProposalDocument): string {
  const said = base.hypothesis === "" ? "" : `\nIts hypothesis: ${base.hypothesis}`;
  if (failure === null) return `Trial ${base.trial}: ${base.status ?? "not ended"}, value ${base.value ?? "none"}.${said}`;
  const output = failure.output.trim() === "" ? "" : `\nIts output:\n${failure.output}`;
  return `Trial ${base.trial} ended ${failure.status} in stage ${failure.stage}: ${failure.reason}${said}${output}`;
}

function remembered({ trial, hypothesis, status, value }: ProposalDocument["memory"][number]): string {
  return `${trial} ${status} ${value}: ${hypothesis.replace(/\s+/g, " ")}`;
}

function stateOf({ best, steering: { held, pinned }, trialsLeft, activeMsLeft }: ProposalDocument): string {
  const lines = [
    best === null ? "" : `Best so far: ${best.trial} with ${best.value}`,
    pinned.length === 0 ? "" : `Pinned by the operator, to be improved next: ${pinned.join(", ")}`,
    held.length === 0 ? "" : `Held by the operator, not to be built on: ${held.join(", ")}`,
    trialsLeft === null ? "" : `Trials left: ${trialsLeft}`,
    activeMsLeft === null ? "" : `Minutes left: ${Math.floor(activeMsLeft / 60_000)}`,
  ];
  return lines.filter((line) => line !== "").join("\n");
}
