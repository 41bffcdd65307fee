/**
 * Hypotheses, reasons, metric names, paths and captured output come from researchers and candidates. None of it may
 * move a terminal's cursor, forge a row of a table, open a tag or start a formula.
 */

/** Control characters except tab and newline, line separators, lone surrogates, and the invisible marks that reorder, join or hide text. */
const unprintable = /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

function escapedCodePoint(found: string): string {
  return `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Visible instead of effective: an escape character becomes `\u{1b}`. CR LF becomes a newline first. */
export function printable(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(unprintable, escapedCodePoint);
}

/** One printable line of at most `width` characters; what is cut is marked. */
export function oneLine(text: string, width = Number.POSITIVE_INFINITY): string {
  return shorten(printable(text).replace(/\s+/g, " ").trim(), width);
}

/** Cuts to `width` characters, the last of which is then an ellipsis. */
export function shorten(text: string, width: number): string {
  if (text.length <= width) return text;
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, Math.max(0, width - 1)).join("")}…`;
}

/** For running Markdown text and table cells: every character that Markdown or HTML would act on is made plain. */
export function markdown(text: string, width = Number.POSITIVE_INFINITY): string {
  return oneLine(text, width)
    .replace(/[\\`*_[\]|~$#]/g, "\\$&")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("@", "&#64;")
    .replaceAll("://", "&#58;//")
    .replace(/\bwww\./gi, (found) => `${found.slice(0, 3)}&#46;`)
    .replace(/^(\d+)\./, "$1\\.")
    .replace(/^[-+=]/, "\\$&");
}

/** For names inside running Markdown text, as code: a backtick cannot end it. */
export function markdownCode(text: string, width = Number.POSITIVE_INFINITY): string {
  return `\`${oneLine(text, width).replaceAll("`", "'").replaceAll("|", "¦") || " "}\``;
}

/** A fenced block that its content cannot close. */
export function fenced(text: string, language = ""): string {
  const content = printable(text).replace(/\n+$/, "");
  const longest = Math.max(2, ...[...content.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${content}\n${fence}`;
}

/**
 * For a cell of a TSV file: backslash, tab and line ends are written `\\`, `\t`, `\n`, `\r`; a text that a spreadsheet
 * would take for a formula gets an apostrophe in front, as spreadsheets themselves do.
 */
export function tsvText(text: string): string {
  const escaped = text
    .replaceAll("\\", "\\\\")
    .replaceAll("\t", "\\t")
    .replaceAll("\n", "\\n")
    .replaceAll("\r", "\\r")
    .replace(unprintable, escapedCodePoint);
  return /^[=+\-@]/.test(escaped) ? `'${escaped}` : escaped;
}

/** What JSON lets stand although a terminal acts on it: C1 controls, and marks that reorder or hide text. */
const actedOn = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** One JSON document that does nothing to a terminal. */
export function jsonDocument(value: unknown): string {
  const escaped = (found: string): string =>
    [...Array(found.length).keys()].map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");
  return `${JSON.stringify(value, null, 2).replace(actedOn, escaped)}\n`;
}
