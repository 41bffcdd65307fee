import { HookFiles } from "../adapters/hooks/hook-files.js";
import { type HookEnd, type RunningHook, startHook } from "../adapters/hooks/hook-process.js";
import { parseEvent } from "../core/protocol/events.js";
import { jsonDocument, printable } from "../research/report/hostile-text.js";
import type { Run } from "../research/runner/run.js";
import { hookDocument, type Occurrence, occurrenceOf, stallOf } from "./hook-document.js";
import { type HookSettings, type HookWishes, keepGiven, settingsInForce } from "./hooks.js";
import type { Project } from "./project.js";
import { secretsOf, withoutSecrets } from "./secrets.js";

/** Wall limit of one hook, and the longest that a process waits for hooks at its end. */
const defaultLimitMs = 60_000;

interface Parts {
  readonly run: Run;
  readonly project: Project;
  /** The run's name in this project. */
  readonly name: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly configured: HookWishes;
  /** From this command line; null: what was given before holds. */
  readonly given: HookWishes | null;
  /** Says something to whoever looks on. */
  readonly note: (line: string) => void;
  readonly limitMs?: number;
}

/** A document that waits for its hook. */
interface Waiting {
  readonly occurrence: Occurrence;
  readonly command: string;
  readonly document: string;
}

/**
 * Tells the operator's hooks what happens in a run that this process owns: in order, one at a time, beside the run. What
 * was delivered is kept after each, so that the next owner delivers the rest; a death in between delivers one twice. A
 * hook that fails was delivered.
 */
export class HookDelivery {
  private readonly files: HookFiles;
  private readonly settings: HookSettings;
  private readonly limitMs: number;
  private readonly queue: Waiting[] = [];
  private running: RunningHook | null = null;
  private working: Promise<void> | null = null;
  private closed = false;
  private stall: NodeJS.Timeout | undefined;
  private stopListening: () => void = () => undefined;

  /** @throws RefusedError when what was given before cannot be read */
  constructor(private readonly parts: Parts) {
    this.files = new HookFiles(parts.project.existingRun(parts.name));
    if (parts.given !== null) keepGiven(this.files, parts.given);
    this.settings = settingsInForce(this.files, parts.configured);
    this.limitMs = parts.limitMs ?? defaultLimitMs;
    if (Object.keys(this.settings.commands).length === 0) {
      // Hooks that come later do not hear of what was before them.
      this.files.forgetDelivered();
      return;
    }
    this.catchUp();
    this.stopListening = parts.run.onEvent((event) => {
      if (event.type === "trial.ended" || event.type === "run.resumed") this.watchStall();
      const occurrence = occurrenceOf(event);
      if (occurrence !== null) this.enqueue(occurrence);
    });
    this.watchStall();
  }

  /** What an owner before this one could not deliver any more. Whoever configures a first hook hears of nothing old. */
  private catchUp(): void {
    const { run } = this.parts;
    const delivered = this.files.readDelivered();
    if (delivered === null) return this.keepDelivered(run.state.version);
    for (const stored of run.ledger.read(delivered)) {
      const occurrence = occurrenceOf(parseEvent(stored));
      if (occurrence !== null) this.enqueue(occurrence);
    }
  }

  private enqueue(occurrence: Occurrence): void {
    const { run, project, name } = this.parts;
    const command = this.settings.commands[occurrence.event];
    if (command === undefined || this.closed) return;
    // Of what waits, only the newest best is still news; and of two stalls the later one.
    if (occurrence.event === "best" || occurrence.event === "stalled") {
      const old = this.queue.findIndex((each) => each.occurrence.event === occurrence.event);
      if (old >= 0) this.queue.splice(old, 1);
    }
    const place = { run: name, folder: project.folder };
    try {
      // Described now, while the state is the one of the ledger.
      const document = jsonDocument(hookDocument(occurrence, place, run.state, (digest) => run.ledger.blob(digest)));
      this.queue.push({ occurrence, command, document });
    } catch (error) {
      return this.parts.note(`the hook for ${occurrence.event} has nothing to say: ${(error as Error).message}`);
    }
    this.working ??= this.work();
  }

  private async work(): Promise<void> {
    // Not before this turn is over: what is told with it may be newer.
    await Promise.resolve();
    for (let next = this.queue.shift(); next !== undefined && !this.closed; next = this.queue.shift()) await this.deliver(next);
    this.working = null;
  }

  private async deliver({ occurrence, command, document }: Waiting): Promise<void> {
    const { project, variables } = this.parts;
    const startedAt = performance.now();
    this.running = startHook({
      command,
      folder: project.folder,
      environment: withoutSecrets(variables),
      input: document,
      limitMs: this.limitMs,
    });
    const end = await this.running.ended;
    this.running = null;
    // Ended by us on our way out: the next owner delivers it again.
    if (this.closed) return;
    this.tell(occurrence, end, performance.now() - startedAt);
    this.keepDelivered(this.queue.length === 0 ? this.parts.run.ledger.head : occurrence.sequence);
  }

  /** What became of a hook: into the log, and to whoever looks on where it failed. */
  private tell({ event, sequence }: Occurrence, end: HookEnd, tookMs: number): void {
    const how = inWords(end, this.limitMs);
    const said = secretsOf(this.parts.variables).redact(printable(end.output)).trimEnd();
    const lines = [...(said === "" ? [] : said.split("\n")), ...(end.omittedBytes === 0 ? [] : [`… and ${end.omittedBytes} bytes more`])];
    this.log([`${new Date().toISOString()} ${event} #${sequence}: ${how}, ${(tookMs / 1000).toFixed(1)} s`, ...lines].join("\n  "));
    if (end.exitCode !== 0) this.parts.note(`the hook for ${event}: ${how}; the run goes on. ${this.files.log} has what it said.`);
  }

  /** A disk that is full does not take the run with it because of a hook. */
  private log(text: string): void {
    try {
      this.files.append(`${text}\n`);
    } catch (error) {
      this.parts.note(`${this.files.log} cannot be written: ${(error as Error).message}`);
    }
  }

  private keepDelivered(sequence: number): void {
    try {
      this.files.writeDelivered(sequence);
    } catch (error) {
      this.parts.note(`what hooks were told cannot be kept, so that they may be told again: ${(error as Error).message}`);
    }
  }

  private watchStall(): void {
    clearTimeout(this.stall);
    if (this.settings.commands.stalled === undefined || this.closed) return;
    this.stall = setTimeout(() => this.stalled(), this.settings.stalledAfterMs).unref();
  }

  private stalled(): void {
    const { run } = this.parts;
    try {
      // Nothing may go out that is not on disk.
      run.commit();
    } catch {
      // Whoever drives the run finds the same.
      return;
    }
    const occurrence = stallOf(run.state, this.settings.stalledAfterMs, run.now());
    if (occurrence !== null) this.enqueue(occurrence);
  }

  /** Stops listening. `wait`: what waits is delivered first, for as long as one hook may take; the rest is the next owner's. */
  async close(wait: boolean): Promise<void> {
    this.stopListening();
    clearTimeout(this.stall);
    if (this.working === null) return;
    let limit: NodeJS.Timeout | undefined;
    if (wait) await Promise.race([this.working, new Promise((resolve) => (limit = setTimeout(resolve, this.limitMs)))]);
    clearTimeout(limit);
    this.closed = true;
    this.running?.kill();
    await this.working;
  }
}

function inWords({ unstartable, timedOut, signal, exitCode }: HookEnd, limitMs: number): string {
  if (unstartable !== null) return `could not be started: ${unstartable}`;
  if (timedOut) return `ended at its limit of ${limitMs / 1000} s`;
  return signal === null ? `exit code ${exitCode}` : `ended by ${signal}`;
}
