import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * What hooks keep beside a run's ledger: `on.json` (commands given on the command line), `hooks.json` (up to where was
 * delivered) and `hooks.log`. None of them is part of the run's records.
 */
export class HookFiles {
  constructor(private readonly runFolder: string) {}

  get log(): string {
    return join(this.runFolder, "hooks.log");
  }

  get given(): string {
    return join(this.runFolder, "on.json");
  }

  /** What was given on the command line; null when nothing was. @throws SyntaxError when it was altered */
  readGiven(): unknown {
    const text = this.read("on.json");
    return text === null ? null : (JSON.parse(text) as unknown);
  }

  writeGiven(given: unknown): void {
    this.write("on.json", given);
  }

  /** Sequence of the last event that was delivered; null when nothing is kept, or nothing that can be read. */
  readDelivered(): number | null {
    try {
      const { delivered } = JSON.parse(this.read("hooks.json") ?? "null") as { delivered: unknown };
      return typeof delivered === "number" && Number.isSafeInteger(delivered) && delivered >= 0 ? delivered : null;
    } catch {
      return null;
    }
  }

  writeDelivered(delivered: number): void {
    this.write("hooks.json", { delivered });
  }

  forgetDelivered(): void {
    rmSync(join(this.runFolder, "hooks.json"), { force: true });
  }

  /** Adds to the log, of which the newest part and the one before are kept. */
  append(text: string): void {
    if (existsSync(this.log) && statSync(this.log).size + text.length > longestLogBytes) renameSync(this.log, `${this.log}.1`);
    appendFileSync(this.log, text, { mode: 0o600 });
  }

  private read(name: string): string | null {
    try {
      return readFileSync(join(this.runFolder, name), "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  /** Whole or not at all. */
  private write(name: string, value: unknown): void {
    const draft = join(this.runFolder, `.${name}.${process.pid}`);
    writeFileSync(draft, `${JSON.stringify(value)}\n`, { mode: 0o600 });
    renameSync(draft, join(this.runFolder, name));
  }
}

const longestLogBytes = 512 * 1024;
