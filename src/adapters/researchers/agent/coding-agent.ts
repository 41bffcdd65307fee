import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import type { Executor, Found, StageExecution } from "../../../core/ports/executor.js";
import { ResearcherFailedError } from "../../../core/ports/researcher.js";
import type { AgentSession, ServeTools, SessionAgent } from "../../../core/ports/session-agent.js";
import { nothing } from "../../../core/protocol/budget.js";
import { asError, ModelProxy, type ProxyOptions } from "./model-proxy.js";
import { inside, mcpUrl, modelUrl, SessionFolders } from "./session-folders.js";
import type { AgentSettings } from "./settings.js";

export interface CodingAgentOptions {
  readonly name: string;
  readonly settings: AgentSettings;
  readonly model: ProxyOptions;
  readonly executor: Executor;
  readonly serveTools: ServeTools;
  /** Folder on the host that the folders of its sessions are made in; the sandbox's user can pass through it. */
  readonly scratch: string;
  /** Folders of programs, and what they need, as candidates see them. */
  readonly path: readonly string[];
  readonly mounts: StageExecution["mounts"];
}

/** Time for an agent to end by itself when its requests are refused, in ms. */
const farewellMs = 5000;

/**
 * An agent that is a program with a loop of its own. It runs in the sandbox, without network, and reaches its model and
 * the session's tools through two sockets alone.
 */
export function codingAgent(options: CodingAgentOptions): SessionAgent {
  const foldersOf = (session: Pick<AgentSession, "id" | "epoch">): SessionFolders =>
    new SessionFolders(join(options.scratch, `agent-${session.id}.${session.epoch}`));
  return {
    name: options.name,
    drive: (session, signal) => new AgentProcess(options, session, foldersOf(session)).drive(signal),
    async cleanUp(session) {
      await options.executor.stop(executionId(session));
      await options.executor.forget(`${session.id}.${session.epoch}/`);
      await foldersOf(session).remove();
    },
  };
}

function executionId({ id, epoch }: Pick<AgentSession, "id" | "epoch">): string {
  return `${id}.${epoch}/agent-1`;
}

class AgentProcess {
  /** Why it cannot go on; null: nothing keeps it. */
  private why: string | Error | null = null;
  private farewell: NodeJS.Timeout | null = null;

  constructor(
    private readonly options: CodingAgentOptions,
    private readonly session: AgentSession,
    private readonly folders: SessionFolders,
  ) {}

  async drive(signal: AbortSignal): Promise<string> {
    const { options, session, folders } = this;
    const { executor, serveTools, settings } = options;
    const token = randomBytes(32).toString("base64url");
    await folders.layOut(session, settings.command, token);
    const proxy = new ModelProxy(options.model, session, (why) => this.cannotGoOn(why));
    let tools: Awaited<ReturnType<ServeTools>> | null = null;
    const stop = (): void => this.stop();
    try {
      await folders.listening(async (pathOf) => {
        await proxy.listen(pathOf("model.sock"));
        tools = await serveTools(session, pathOf("mcp.sock"), token);
      });
      signal.throwIfAborted();
      await executor.start(execution(options, executionId(session), folders));
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) stop();
      const found = await executor.wait(executionId(session));
      return await this.reasonOf(found, proxy);
    } finally {
      signal.removeEventListener("abort", stop);
      if (this.farewell !== null) clearTimeout(this.farewell);
      await (tools as Awaited<ReturnType<ServeTools>> | null)?.close();
      await proxy.close();
      await executor.forget(`${session.id}.${session.epoch}/`);
      await folders.remove();
    }
  }

  private cannotGoOn(why: string | Error): void {
    this.why ??= why;
    if (why instanceof Error) this.stop();
    else this.farewell ??= setTimeout(() => this.stop(), farewellMs);
  }

  private stop(): void {
    void this.options.executor.stop(executionId(this.session)).catch(() => undefined);
  }

  private async reasonOf(found: Exclude<Found, { state: "running" | "unknown" }>, { lastFailure }: ModelProxy): Promise<string> {
    if (this.why instanceof Error) throw this.why;
    if (this.why !== null) return this.why;
    if (found.state === "gone") throw new ResearcherFailedError("infrastructure", found.reason, nothing);
    const { outcome } = found;
    const minutes = this.options.settings.wallMs / 60_000;
    if (outcome.limit === "wall") return `the agent reached its limit of ${minutes} minutes`;
    if (outcome.limit !== null) return `the agent reached its ${outcome.limit} limit`;
    if (outcome.exitCode === 0) return "the agent ended: exit code 0";
    // It gave up because its model could not be asked: another one would fare no better.
    if (lastFailure?.kind === "unavailable") throw asError(lastFailure);
    const { stdout, stderr } = await this.options.executor.output(executionId(this.session));
    const said = Buffer.concat([stdout.tail, stdout.head, stderr.head, stderr.tail]).toString("utf8").trim().slice(-1500);
    const end = outcome.signal === null ? `exit code ${outcome.exitCode}` : `signal ${outcome.signal}`;
    return `the agent ended: ${end}.${said === "" ? "" : ` It said: ${said}`}`;
  }
}

function execution(options: CodingAgentOptions, id: string, folders: SessionFolders): StageExecution {
  const { settings } = options;
  const shown = settings.mounts.map((path) => ({ source: path, target: path, mode: "read-only" as const }));
  return {
    id,
    command: `exec '${process.execPath.replaceAll("'", "'\\''")}' ${inside.bridge}/bridge.mjs ${inside.sockets} ${inside.bridge}/agent.sh`,
    workingDirectory: inside.work,
    environment: environmentOf(options),
    mounts: [...folders.mounts, ...options.mounts, ...shown, ...nodeMounts()],
    limits: {
      wallMs: settings.wallMs,
      cpuMs: settings.wallMs * 2,
      memoryBytes: 4 * 2 ** 30,
      cpus: 2,
      processes: 256,
      diskBytes: 2 * 2 ** 30,
      outputBytes: 16 * 2 ** 20,
    },
    graceMs: 2000,
    outputFolder: null,
    outputs: [],
    collectInto: null,
    collectMaxBytes: 0,
    writableFolders: [folders.work],
    sandbox: "bubblewrap",
    keepHeadBytes: 64 * 1024,
    keepTailBytes: 64 * 1024,
  };
}

/** The whole of what it sees of an environment: no key is in it, since requests get theirs on their way out. */
function environmentOf({ settings, model, path }: CodingAgentOptions): Record<string, string> {
  const key = "trialist-adds-the-key";
  return {
    PATH: [
      ...settings.mounts.map((each) => join(each, "bin")),
      ...path,
      dirname(process.execPath),
      "/usr/local/bin",
      "/usr/bin",
      "/bin",
    ].join(":"),
    HOME: inside.work,
    TRIALIST_TASK: "Read TASK.md in this folder and do what it says, with the tools of the MCP server trialist.",
    TRIALIST_MCP_URL: mcpUrl,
    TRIALIST_MODEL: model.settings.model,
    ANTHROPIC_BASE_URL: modelUrl,
    ANTHROPIC_API_KEY: key,
    ANTHROPIC_MODEL: model.settings.model,
    OPENAI_BASE_URL: `${modelUrl}/v1`,
    OPENAI_API_KEY: key,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
}

/** Our own Node.js runs the bridge; it usually lies in /usr, which is seen anyway. */
function nodeMounts(): StageExecution["mounts"] {
  const prefix = dirname(dirname(process.execPath));
  return prefix === "/" || prefix === "/usr" || prefix.startsWith("/usr/") ? [] : [{ source: prefix, target: prefix, mode: "read-only" }];
}
