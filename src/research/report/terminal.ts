import { printable } from "./hostile-text.js";

/** How a terminal emphasizes. Reports work without: every mark is also a word. */
export interface Paint {
  bold(text: string): string;
  dim(text: string): string;
  good(text: string): string;
  bad(text: string): string;
}

const same = (text: string): string => text;

/** No colour: for files, pipes and tests. */
export const plainPaint: Paint = { bold: same, dim: same, good: same, bad: same };

/** Columns that text output keeps to. */
export const columns = 100;

const labelWidth = 11;

/** `Label     text`, wrapped; what follows the first line is indented below the text. Paint goes on whole lines. */
export function field(label: string, text: string, paint: (text: string) => string, bold: (text: string) => string): string[] {
  const lines = wrap(text, columns - labelWidth);
  return lines.map((line, index) => `${index === 0 ? bold(label.padEnd(labelWidth)) : " ".repeat(labelWidth)}${paint(line)}`);
}

/** Breaks at spaces; a word longer than a line is cut. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).flatMap((each) => pieces(each, width))) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function pieces(word: string, width: number): string[] {
  const characters = [...word];
  const cut: string[] = [];
  for (let at = 0; at < characters.length; at += width) cut.push(characters.slice(at, at + width).join(""));
  return cut;
}

/** A table with columns as wide as their widest cell; the last one takes what is left. Cells are one line each. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.slice(0, -1).entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length);
  }
  return rows.map((row) => {
    const line = row.map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0))).join("  ");
    return [...line].slice(0, columns).join("").trimEnd();
  });
}

/** The last `lines` lines of an output, printable, each cut to the columns. */
export function tail(text: string, lines: number): string[] {
  const all = printable(text).replace(/\n+$/, "").split("\n");
  const kept = all.slice(-lines).map((line) => [...line.replaceAll("\t", "    ")].slice(0, columns - 2).join(""));
  return all.length > lines ? [`… ${all.length - lines} earlier lines`, ...kept] : kept;
}
