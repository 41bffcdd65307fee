import { isCancel, select, text } from "@clack/prompts";
import {
  askAnswers,
  completeAnswers,
  type InitAnswers,
  InitRefusedError,
  type InitResult,
  initEnvironment,
  type Prompter,
} from "../adapters/environments/init.js";

/** Makes an environment of a folder: by asking where there is a terminal, else by flags alone. */
export async function initFolder(
  folder: string,
  given: Partial<InitAnswers>,
  options: { readonly ask: boolean; readonly force: boolean },
): Promise<InitResult> {
  const ask = options.ask && process.stdin.isTTY === true;
  const answers = ask ? await askAnswers(folder, given, terminalPrompter) : await completeAnswers(folder, given);
  return initEnvironment(folder, answers, { force: options.force, pathVariable: process.env.PATH ?? "/usr/bin:/bin" });
}

const terminalPrompter: Prompter = {
  async text(question, initial) {
    return answered(await text({ message: question, initialValue: initial }));
  },
  async choose(question, choices, initial) {
    const picked = await select<string>({
      message: question,
      options: choices.map((value) => ({ value, label: value })),
      initialValue: initial,
    });
    return answered(picked) as (typeof choices)[number];
  },
};

function answered(answer: string | symbol): string {
  if (!isCancel(answer) && typeof answer === "string") return answer;
  throw new InitRefusedError({ expected: "an answer", found: "that you left", todo: "Nothing was written." });
}
