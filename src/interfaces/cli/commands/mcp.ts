import { setTimeout as sleep } from "node:timers/promises";
import { createRun } from "../../../app/create-run.js";
import { openHost } from "../../../app/environments.js";
import { inspectRun } from "../../../app/inspect.js";
import { mcpTokens } from "../../../app/mcp-tokens.js";
import { type OwnedRun, ownRun } from "../../../app/own-run.js";
import { Project } from "../../../app/project.js";
import { openToolSession, type SessionRole, sessionRoles } from "../../../app/tool-sessions.js";
import { ownVersion } from "../../../app/version.js";
import { isOver, isRunning } from "../../../core/harness/due.js";
import { printable } from "../../../research/report/hostile-text.js";
import { serveHttp } from "../../mcp/http.js";
import { sessionSocket } from "../../mcp/session-socket.js";
import { serveStdio } from "../../mcp/stdio.js";
import { type CliCommand, type CommandInput, exitCodes, numberOption, textOption, wholeNumber } from "../command.js";
import { hookWishes } from "../hook-options.js";
import { describeRunOptions, runRequest } from "../run-options.js";
import type { Terminal } from "../terminal.js";
import { UsageError } from "../usage-error.js";

const example = `
A coding agent connects as an MCP client and becomes the researcher: it reads, edits, checks and submits, and trialist keeps
the same rules for it as for any other. With --name the next start goes on with the run of that name. Over standard input and output one client is served; with --http any number, each
with a bearer token that is bound to a role (${sessionRoles.join(", ")}).

Example:
  claude mcp add trialist -- trialist mcp environments/flchain --name agent --max-trials 20
  trialist mcp --run flchain --http 7717`;

/** Serves a run to coding agents. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Starts or resumes a run whose trials come from outside, and serves it to MCP clients.")
      .argument("[environment]", "folder with an environment.yaml, for a new run")
      .option("--run <name>", "go on with this run instead of starting one")
      .option("--frozen", "with --run: go on with the frozen copy although the environment's files changed", false)
      .option("--http <port>", "serve streamable HTTP on this port of 127.0.0.1; 0: any free one", wholeNumber("--http"))
      .option("--as <role>", `role of the client on standard input: ${sessionRoles.join(", ")}`, "researcher")
      .addHelpText("after", example);
    describeRunOptions(program);
  },
  async run(input) {
    const { terminal } = input;
    const project = new Project(input.folder);
    const host = await openHost();
    const resumed = textOption(input.options, "run") ?? openRunNamed(project, textOption(input.options, "name"));
    const name = resumed ?? (await createRun(project, host, { ...requestOf(input), note: (line) => terminal.note(printable(line)) }));
    const role = roleOf(textOption(input.options, "as") ?? "researcher");
    terminal.note(`run ${name}`);
    const frozen = resumed === undefined || input.options["frozen"] === true;
    const version = await ownVersion();
    const owned = await ownRun(project, host, name, {
      frozen,
      progress: (line) => terminal.note(line),
      serveTools: sessionSocket(version),
      hooks: hookWishes(input.options),
    });
    if (owned.run.state.phase === "paused" || owned.run.state.phase === "suspended")
      owned.runner.command({ type: "resume", reason: "served to MCP clients" });
    const port = numberOption(input.options, "http");
    const clients =
      port === undefined
        ? () => serveStdio(openToolSession(owned, role), version)
        : () => serveUntilStopped(owned, { project, name, port, version }, terminal);
    return await driveAndServe(owned, clients, name, terminal);
  },
};

/** A run of this name that is not over: an agent that starts again goes on with it. */
function openRunNamed(project: Project, name: string | undefined): string | undefined {
  if (name === undefined || !project.runNames().includes(name)) return undefined;
  const { state, close } = inspectRun(project, name);
  close();
  return isOver(state.phase) ? undefined : name;
}

function requestOf(input: CommandInput): Parameters<typeof createRun>[2] {
  if (input.args[0] === undefined) throw new UsageError("mcp expects the folder of an environment, or --run with the name of a run");
  return { ...runRequest(input), organization: { name: "sessions", configuration: { sessions: 0 } }, researcher: "mcp" };
}

function roleOf(text: string): SessionRole {
  const role = sessionRoles.find((each) => each === text);
  if (role === undefined) throw new UsageError(`--as expects ${sessionRoles.join(" or ")}, ${text} was given`);
  return role;
}

/** The run goes on while clients are served; reads are served after its end, and it is left when they have gone. */
async function driveAndServe(owned: OwnedRun, clients: () => Promise<void>, name: string, terminal: Terminal): Promise<number> {
  const { run, runner } = owned;
  const served = new AbortController();
  const working = keepWorking(owned, served.signal, terminal);
  try {
    await Promise.race([clients(), working.then(() => new Promise<never>(() => undefined))]);
    served.abort();
    runner.leave();
    await working;
  } finally {
    await owned.close();
  }
  const { phase } = run.state;
  if (phase === "finished") return exitCodes.ok;
  if (phase === "cancelled") return exitCodes.refused;
  terminal.note(`\`trialist mcp --run ${name}\` goes on.`);
  return exitCodes.suspended;
}

/** Drives the run while clients are served: a run that somebody pauses and resumes goes on, and one that is over is still read. */
async function keepWorking({ run, runner }: OwnedRun, served: AbortSignal, terminal: Terminal): Promise<void> {
  for (;;) {
    await runner.work();
    const { phase, reason } = run.state;
    if (served.aborted || isOver(phase)) return;
    terminal.note(printable(`the run is ${phase}: ${reason}`));
    while (!isRunning(run.state) && !served.aborted) await sleep(lookMs, undefined, { signal: served }).catch(() => undefined);
    if (served.aborted) return;
  }
}

/** How often it is looked whether a halted run goes on, in ms. */
const lookMs = 300;

async function serveUntilStopped(
  owned: OwnedRun,
  { project, name, port, version }: { readonly project: Project; readonly name: string; readonly port: number; readonly version: string },
  terminal: Terminal,
): Promise<void> {
  const { file, tokens } = await mcpTokens(project, name);
  const server = await serveHttp({
    listen: { host: "127.0.0.1", port },
    tokens,
    version,
    openSession: (role) => openToolSession(owned, role),
  });
  terminal.note(`MCP at ${server.url}; the bearer tokens of ${sessionRoles.join(" and ")} lie in ${file}`);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  await new Promise<void>((resolve) => {
    for (const signal of signals) process.once(signal, () => resolve());
  });
  await server.close();
}
