import type { CliCommand } from "./command.js";

interface Entry {
  readonly name: string;
  readonly summary: string;
  /** Loaded when it is asked for, so that `--help` costs no more than Node's start. */
  readonly load: () => Promise<{ readonly command: CliCommand }>;
}

/** Every command: one line here, one file in `commands/`. */
export const commands: readonly Entry[] = [
  { name: "init", summary: "turn a folder with a script into an environment", load: () => import("./commands/init.js") },
  { name: "check", summary: "validate an environment and prove what a candidate cannot do", load: () => import("./commands/check.js") },
  { name: "doctor", summary: "say what this machine lacks and how to mend it", load: () => import("./commands/doctor.js") },
  { name: "estimate", summary: "say what a run may cost in language models", load: () => import("./commands/estimate.js") },
  {
    name: "calibrate",
    summary: "measure how often the promotion rule keeps what is no better",
    load: () => import("./commands/calibrate.js"),
  },
  { name: "run", summary: "start a run of an environment", load: () => import("./commands/run.js") },
  { name: "mcp", summary: "let coding agents propose: serve a run to MCP clients", load: () => import("./commands/mcp.js") },
  { name: "resume", summary: "go on with a run that was paused, suspended or killed", load: () => import("./commands/resume.js") },
  { name: "extend", summary: "go on with a finished run under larger caps", load: () => import("./commands/extend.js") },
  { name: "fork", summary: "begin a new run with the record of another one", load: () => import("./commands/fork.js") },
  { name: "attach", summary: "look on while another process works on a run", load: () => import("./commands/attach.js") },
  { name: "logs", summary: "print what a detached run said", load: () => import("./commands/logs.js") },
  { name: "pause", summary: "stop a run at its next safe point", load: () => import("./commands/pause.js") },
  { name: "finish", summary: "end a run early: what is open may end, nothing new starts", load: () => import("./commands/finish.js") },
  { name: "cancel", summary: "end a run at once; open trials are cancelled", load: () => import("./commands/cancel.js") },
  { name: "list", summary: "list this project's runs", load: () => import("./commands/list.js") },
  { name: "status", summary: "what won, by how much, how sure, what it cost", load: () => import("./commands/status.js") },
  { name: "show", summary: "show a run's trials, or one trial in full", load: () => import("./commands/show.js") },
  { name: "diff", summary: "compare a candidate with the baseline or another trial", load: () => import("./commands/diff.js") },
  { name: "apply", summary: "put a candidate into the working tree", load: () => import("./commands/apply.js") },
  { name: "heldout", summary: "score a candidate on the held-out split; counted as a look", load: () => import("./commands/heldout.js") },
  { name: "attribute", summary: "say which changes a winner owes its gain to", load: () => import("./commands/attribute.js") },
  { name: "report", summary: "write a run's report and its exports", load: () => import("./commands/report.js") },
  { name: "queue", summary: "list what waits in a run; add candidates, remove, move", load: () => import("./commands/queue.js") },
  { name: "hold", summary: "let nothing start from a trial for now", load: () => import("./commands/hold.js") },
  { name: "pin", summary: "let the next improvements start from a trial", load: () => import("./commands/pin.js") },
  { name: "release", summary: "take a hold or a pin back", load: () => import("./commands/release.js") },
  { name: "note", summary: "tell the researchers of a run something", load: () => import("./commands/note.js") },
  { name: "retract", summary: "mark a trial as invalid, with all that stood on it", load: () => import("./commands/retract.js") },
  { name: "verify", summary: "recompute a run's records and name the first bad one", load: () => import("./commands/verify.js") },
  {
    name: "replay",
    summary: "decide a recorded run again, offline, and name the first difference",
    load: () => import("./commands/replay.js"),
  },
  { name: "gc", summary: "make room: remove what nothing needs any more", load: () => import("./commands/gc.js") },
  { name: "pack", summary: "write a trial as one archive that others can measure again", load: () => import("./commands/pack.js") },
  { name: "rescore", summary: "measure a packed trial again and say whether its claim holds", load: () => import("./commands/rescore.js") },
  { name: "export", summary: "write a run as JSON Lines", load: () => import("./commands/export.js") },
  { name: "import", summary: "read a run from JSON Lines", load: () => import("./commands/import.js") },
];
