import { configurationOf, type RunState } from "../../core/harness/state.js";
import { steeringView } from "../../core/harness/views.js";
import type { SessionMessage, ToolCall } from "../../core/ports/session-model.js";
import { byteLength, firstBytes } from "../roles/prompt.js";

/** Most bytes of all messages, of whatever model: what is older is dropped first, tool results before words. */
const longest = 256 * 1024;
/** The newest messages, which the next answer hangs on: they are shortened, not dropped. */
const newest = 4;
const dropped = "(dropped to save room: call the tool again if you need it)";

const system = `You are a researcher who improves a program by experiments, on your own, with the tools that you are given.
Every trial that you submit is run and measured in a sandbox, without network, by a program that you cannot see or influence;
only a better measurement counts, and a promising one is confirmed on fresh seeds. Trials are few: think before each one,
change one thing at a time, learn from what was tried, and wait for a trial's result before you build on it.
Say DONE, without a tool call, when nothing is left that is worth a trial.`;

/** What a session has to know at its start. `base`: the trial that it starts from. */
export function situation(state: RunState, base: string): string {
  const { environment, budget } = configurationOf(state);
  const metrics = environment.metrics.map(({ name, direction }) => `${name} (${direction})`).join(", ");
  const { held, pinned } = steeringView(state);
  const text = [
    `Environment: ${environment.name}`,
    firstBytes(environment.description, 8 * 1024),
    `Metrics, the first decides: ${metrics}`,
    `Editable files: ${environment.surface.editable.join(", ")}`,
    `Your working copy starts from trial ${base}. Best so far: ${state.leader?.trial ?? "the baseline"}.`,
    pinned.length === 0 ? "" : `Pinned by the operator, to be improved next: ${pinned.join(", ")}.`,
    held.length === 0 ? "" : `Held by the operator, not to be built on: ${held.join(", ")}.`,
    budget.trials === null ? "" : `Trials left: ${Math.max(0, budget.trials - state.budget.spent.trials - state.budget.reserved.trials)}`,
  ];
  return text.filter((line) => line !== "").join("\n");
}

/** What was said in one session, kept within bounds whatever its length. */
export class Conversation {
  private readonly spoken: SessionMessage[] = [];
  private readonly opening: SessionMessage[];
  private readonly most: number;

  /** `base`: the trial that the working copy starts from. `redact`: takes secrets out of what the model is told. `room`: bytes that it takes in. */
  constructor(state: RunState, base: string, redact: (text: string) => string, room: number | null) {
    this.most = Math.min(longest, room ?? longest);
    this.opening = [
      { role: "system", text: system },
      { role: "user", text: redact(situation(state, base)) },
    ];
  }

  answered(text: string, toolCalls: readonly ToolCall[]): void {
    this.spoken.push({ role: "assistant", text, toolCalls });
  }

  told(call: ToolCall, text: string, isError: boolean): void {
    this.spoken.push({ role: "tool", call, text, isError });
  }

  /** A word from us. */
  nudge(text: string): void {
    this.spoken.push({ role: "user", text });
  }

  /** All of it, within bounds. */
  messages(): readonly SessionMessage[] {
    this.shorten();
    return [...this.opening, ...this.spoken];
  }

  private shorten(): void {
    const old = this.spoken.length - newest;
    for (let place = 0; place < old && this.bytes() > this.most; place++) this.cut(place, 0);
    while (this.bytes() > this.most && this.dropOldest());
    // Whatever is left is needed: each result keeps a share, the larger the fewer there are.
    for (let share = this.most / 2; this.bytes() > this.most && share > 256; share /= 2) {
      for (const place of this.spoken.keys()) this.cut(place, share);
    }
  }

  /** Cuts a tool's result to its beginning; 0: to nothing. */
  private cut(place: number, bytes: number): void {
    const message = this.spoken[place];
    if (message?.role !== "tool" || byteLength(message.text) <= Math.max(bytes, byteLength(dropped))) return;
    const text = bytes === 0 ? dropped : `${firstBytes(message.text, bytes)}\n${dropped}`;
    this.spoken[place] = { ...message, text };
  }

  /** Drops the oldest answer with the results of its tools, which must not stand without each other. */
  private dropOldest(): boolean {
    const next = this.spoken.findIndex((message, index) => index > 0 && message.role !== "tool");
    if (next < 0 || next >= this.spoken.length - 1) return false;
    this.spoken.splice(0, next);
    return true;
  }

  private bytes(): number {
    return byteLength(JSON.stringify([this.opening, this.spoken]));
  }
}

/** A tool call's input as the model meant it; what is no JSON is told to be none by the tool. */
export function inputOf({ input }: ToolCall): unknown {
  if (input.trim() === "") return {};
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}
