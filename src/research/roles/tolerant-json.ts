/**
 * Reads the JSON object out of what a language model wrote: thoughts, fences, prose around it, leaked markup of tool
 * calls, trailing commas and line breaks inside texts are what models add; none of it becomes a part of the answer.
 */

/** Text longer than this is not read at all: nobody's proposal is that long. Characters. */
export const longestAnswer = 4 * 1024 * 1024;

/** Thoughts that models print, closed, cut off at the start, or cut off at the end. */
const thoughts = [
  /<(think|thinking|thought|reasoning)>[\s\S]*?<\/\1>/gi,
  /^[\s\S]*?<\/(?:think|thinking|thought|reasoning)>/i,
  /<(?:think|thinking|thought|reasoning)>[\s\S]*$/i,
];

/** Tokens of chat templates and tool calls: `<|im_end|>`, `<tool_call>`, `</function>`, `[TOOL_CALLS]`. */
const markup =
  /<\|[^<>|\n]{1,40}\|>|<\/?(?:tool_call|tool_calls|function_call|function_calls|function|invoke|parameter|tool_response)\b[^<>\n]{0,80}>|\[\/?TOOL_CALLS?\]/gi;

/** Characters that are looked at in search of an object: what never closes must not be scanned again and again. */
const patience = 20_000_000;

/**
 * The object in the text that has most of these members, the last one of several: a draft in a thought comes before the
 * answer. Undefined when there is none: of an answer that was cut, the small objects that closed before are not the answer.
 */
export function readJson(text: string, members: readonly string[]): Record<string, unknown> | undefined {
  if (text.length > longestAnswer) return undefined;
  const whole = parsed(text.trim());
  if (whole !== undefined) return whole;
  const having = (object: Record<string, unknown>): number => members.filter((member) => Object.hasOwn(object, member)).length;
  let best: Record<string, unknown> | undefined;
  for (const found of objectsIn(text)) {
    if (having(found) > 0 && (best === undefined || having(found) >= having(best))) best = found;
  }
  return best;
}

/** Whether an object begins in the text and does not end, as in an answer that was cut at the most tokens of output. */
export function breaksOff(text: string): boolean {
  const start = text.indexOf("{");
  return start >= 0 && endOfObject(text, start) === null;
}

function withoutThoughts(text: string): string {
  return thoughts.reduce((rest, thought) => rest.replace(thought, " "), text);
}

/** A sentence without thoughts and markup, which some models put into their fields too. */
export function plainSentence(text: string): string {
  return withoutThoughts(text)
    .replace(markup, " ")
    .replace(/[ \t]+/g, " ")
    .trim();
}

/** A file's text without the fence, the thought before it and the template's tokens after it that a model added. */
export function plainFile(text: string): string {
  const body = withoutTokens(text.replace(/^\s*<(think|thinking|thought|reasoning)>[\s\S]*?<\/\1>\s*/i, ""));
  const fenced = /^\s*```[^\n`]*\n([\s\S]*?)\n?```\s*$/.exec(body);
  // A fence in the middle is the file's own: only one around the whole is the model's.
  return fenced?.[1] === undefined || fenced[1].includes("\n```") ? body : `${fenced[1]}\n`;
}

function* objectsIn(text: string): Generator<Record<string, unknown>> {
  let scanned = 0;
  for (let start = text.indexOf("{"); start >= 0 && scanned < patience; start = text.indexOf("{", start + 1)) {
    const end = endOfObject(text, start);
    scanned += (end ?? text.length) - start;
    if (end === null) continue;
    const found = parsed(text.slice(start, end)) ?? parsed(repaired(text.slice(start, end)));
    if (found === undefined || Object.keys(found).length === 0) continue;
    yield found;
    start = end - 1;
  }
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Place after the bracket that closes the object at `start`; null when it never closes. */
function endOfObject(text: string, start: number): number | null {
  let depth = 0;
  let inText = false;
  for (let place = start; place < text.length; place++) {
    const character = text[place];
    if (inText) {
      if (character === "\\") place += 1;
      else if (character === '"') inText = false;
    } else if (character === '"') inText = true;
    else if (character === "{" || character === "[") depth += 1;
    else if (character === "}" || character === "]") {
      depth -= 1;
      if (depth === 0) return place + 1;
    }
  }
  return null;
}

const escapes: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Drops commas before a closing bracket, and escapes line breaks and tabs inside texts. */
function repaired(text: string): string {
  const parts: string[] = [];
  let inText = false;
  for (let place = 0; place < text.length; place++) {
    const character = text[place] ?? "";
    if (inText) {
      if (character === "\\") parts.push(character, text[++place] ?? "");
      else parts.push(escapes[character] ?? character);
      if (character === '"') inText = false;
    } else if (character === "," && /^\s*[}\]]/.test(text.slice(place + 1, place + 200))) continue;
    else {
      parts.push(character);
      if (character === '"') inText = true;
    }
  }
  return parts.join("");
}

const token = /(?:<\|[^<>|\n]{1,40}\|>|<\/(?:tool_call|function|parameter|invoke)>)$/i;

/** The text without tokens of templates at its end; the end alone is looked at, whatever the length. */
function withoutTokens(text: string): string {
  let body = text;
  for (;;) {
    const trimmed = body.trimEnd();
    const found = token.exec(trimmed.slice(-64));
    if (found === null) return body;
    body = `${trimmed.slice(0, trimmed.length - found[0].length).trimEnd()}\n`;
  }
}
