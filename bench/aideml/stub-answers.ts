/** What the stub model says: the same plan, script and review to both programs, another number every time. */

/** A chat completions request, as far as it decides the answer. */
export interface ChatRequest {
  readonly messages: readonly { readonly content: unknown }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly stream?: boolean;
}

export interface ChatMessage {
  readonly role: "assistant";
  readonly content: string | null;
  readonly tool_calls?: readonly unknown[];
}

/** The file that trialist's candidates consist of. */
export const scriptPath = "solution.py";

/** A script of nothing but a number, between 0.1 and 1: what it takes to run is counted apart. */
export function scriptText(number: number): string {
  const score = (100_000 + ((number * 2_654_435_761) % 899_999)) / 1_000_000;
  return `# attempt ${number}\nprint("score: ${score.toFixed(6)}")\n`;
}

/** One short sentence. Real plans are longer, and aideml's prompts grow with every plan and review that was made. */
export function planText(number: number): string {
  return `Attempt ${number}: let the script print another score.`;
}

export function answerTo(request: ChatRequest, number: number): ChatMessage {
  const prompt = request.messages.map((message) => textOf(message.content)).join("\n");
  const tool = request.tools?.[0]?.function.name;
  if (tool === "submit_review") return call(tool, number, review(prompt));
  if (isFromAideml(prompt)) return say(`${planText(number)}\n\n\`\`\`python\n${scriptText(number)}\`\`\``);
  const proposal = { plan: { hypothesis: planText(number) }, files: { [scriptPath]: scriptText(number) } };
  return tool === undefined ? say(JSON.stringify(proposal)) : call(tool, number, proposal);
}

function isFromAideml(prompt: string): boolean {
  return prompt.includes("Kaggle grandmaster");
}

function textOf(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content ?? "");
}

/** aideml learns a score from its model alone, and takes only one with a fraction for a number. */
function review(prompt: string): unknown {
  const output = prompt.slice(prompt.lastIndexOf("Execution output"));
  const score = /score: ([\d.]+)/.exec(output)?.[1];
  if (score === undefined) return { is_bug: true, summary: "No score was printed.", metric: null, lower_is_better: false };
  return { is_bug: false, summary: "The script printed a score.", metric: Number(score), lower_is_better: false };
}

function say(content: string): ChatMessage {
  return { role: "assistant", content };
}

function call(name: string, number: number, input: unknown): ChatMessage {
  const made = { id: `call-${number}`, type: "function", function: { name, arguments: JSON.stringify(input) } };
  return { role: "assistant", content: null, tool_calls: [made] };
}
