import { resolve } from "node:path";
import { type CandidateSource, candidateSource } from "../../../app/candidate-source.js";
import { inspectRun } from "../../../app/inspect.js";
import { operate } from "../../../app/operate.js";
import { Project } from "../../../app/project.js";
import { addToQueue } from "../../../app/queue.js";
import type { OperatorCommand } from "../../../core/protocol/commands.js";
import { printable } from "../../../research/report/hostile-text.js";
import { plural } from "../../../research/report/numbers.js";
import { queueText, queueView } from "../../../research/report/queue-view.js";
import { type CliCommand, type CommandInput, exitCodes, reasonOption, textOption } from "../command.js";
import { UsageError } from "../usage-error.js";

const example = `
Without a word: lists what waits. The words:
  add FOLDER | RUN:tN   puts a candidate into the queue: a whole folder laid out as the environment's baseline, or another run's trial
  remove qN | tN        takes an entry out, or cancels a trial of which nothing runs
  move qN               to the end, or with --before qM in front of another one

Example:
  trialist queue night
  trialist queue night add ./my-idea --hypothesis 'a wider window' --reason 'worth a look'
  trialist queue night add other:t7 --before q2 --reason 'it won there'
  trialist queue night remove t9 --reason 'the same as t4'`;

/** What waits in a run, and what the operator puts there or takes out. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Lists what waits in a run and what is under way; adds candidates that go before all others, removes, moves.")
      .argument("<run>", "name of the run")
      .argument("[action]", "add, remove or move")
      .argument("[what]", "a folder or RUN:tN to add; qN or tN to remove; qN to move")
      .option("--hypothesis <text>", "add: what it changes and why it should help")
      .option("--base <trial>", "add: the trial that it is compared with", "t0")
      .option("--before <entry>", "add, move: the entry that it goes in front of (default: the end)")
      .option("--reason <text>", "why; recorded", reasonOption)
      .addHelpText("after", example);
  },
  async run(input) {
    const [name = "", action, what] = input.args;
    if (action === undefined) return list(input, name);
    if (what === undefined) throw new UsageError(`queue ${action} expects what to ${action}; see trialist queue --help`);
    const reason = textOption(input.options, "reason");
    if (reason === undefined) throw new UsageError(`queue ${action} expects --reason, a few words which are recorded`);
    if (action === "add") return add(input, name, what, reason);
    return act(input, name, commandOf(input, action, what, reason));
  },
};

function list({ folder, terminal }: CommandInput, name: string): number {
  const { state, close } = inspectRun(new Project(folder), name);
  close();
  const view = queueView(state, name);
  terminal.say(queueText(view, terminal.paint));
  terminal.data(view);
  return exitCodes.ok;
}

async function add({ options, folder, terminal }: CommandInput, name: string, what: string, reason: string): Promise<number> {
  const source = candidateSource(what, (given) => resolve(folder, given));
  const hypothesis = textOption(options, "hypothesis") ?? null;
  if (source.kind === "folder" && (hypothesis ?? "").trim() === "")
    throw new UsageError("queue add expects --hypothesis: what the candidate changes and why it should help");
  const request = { source, hypothesis, base: textOption(options, "base") ?? "t0", before: textOption(options, "before") ?? null, reason };
  const added = await addToQueue(new Project(folder), name, request);
  terminal.say(`${added.entry} waits in the queue of ${name}, which is ${added.phase}: it is measured before what researchers propose.`);
  if (added.leftOut > 0) terminal.say(`Left out, since it is no part of the surface: ${added.leftOut} of the folder's files.`);
  if (added.removes.length > 0) terminal.say(removal(added.removes, source.kind));
  terminal.data({ run: name, ...added });
  return exitCodes.ok;
}

/** Somebody who brings only what they changed has not meant to delete the rest. */
function removal(paths: readonly string[], kind: CandidateSource["kind"]): string {
  const most = 20;
  const named = paths.slice(0, most).map((path) => (/^[\w./-]+$/.test(path) ? path : JSON.stringify(path)));
  const more = paths.length > most ? `, and ${paths.length - most} more` : "";
  const what = kind === "folder" ? "a folder" : "a trial";
  return printable(
    `It removes ${plural(paths.length, "file")} that the baseline has: ${named.join(", ")}${more}; ${what} stands for the whole candidate.`,
  );
}

function commandOf({ options }: CommandInput, action: string, what: string, reason: string): OperatorCommand {
  if (action === "move") return { type: "requeue", entry: what, before: textOption(options, "before") ?? null, reason };
  if (action !== "remove") throw new UsageError(`queue expects add, remove or move; ${JSON.stringify(action)} was given`);
  return what.startsWith("t") ? { type: "cancel_trial", trial: what, reason } : { type: "dequeue", entry: what, reason };
}

async function act({ folder, terminal }: CommandInput, name: string, command: OperatorCommand): Promise<number> {
  const done = await operate(new Project(folder), name, command);
  const words = { requeue: "moved", dequeue: "out of the queue", cancel_trial: "cancelled" } as const;
  const subject = "entry" in command ? command.entry : "trial" in command ? command.trial : "";
  terminal.say(`${subject} is ${words[command.type as keyof typeof words]}.`);
  terminal.data({ run: name, ...done });
  return exitCodes.ok;
}
