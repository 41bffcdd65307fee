import { confirm, isCancel } from "@clack/prompts";
import type { Terminal } from "./terminal.js";
import { UsageError } from "./usage-error.js";

/** Asks before something long begins. @throws UsageError where nobody can be asked, or when the answer is no */
export async function agreed(question: string, isYes: boolean, terminal: Terminal): Promise<void> {
  if (isYes) return;
  const canAsk = terminal.isInteractive && !terminal.json && process.stdin.isTTY === true && process.stdout.isTTY === true;
  if (!canAsk) throw new UsageError(`${question} Nobody can be asked here: --yes agrees`);
  const answer = await confirm({ message: question });
  if (isCancel(answer) || !answer) throw new UsageError("nothing was started, as you wish");
}
