import { oneLine } from "./hostile-text.js";

/** A Markdown table; cells are escaped already. */
export function grid(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => (cell === "" ? " " : oneLine(cell))).join(" | ")} |`;
  return [line(header), `|${header.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}
