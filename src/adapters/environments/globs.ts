import picomatch from "picomatch";

/** Longest glob that is accepted; a longer one is a mistake, or an attack on the matcher. */
const globMaxLength = 200;

/** Why a relative path cannot be used, or null when it can. */
export function pathFault(path: string): string | null {
  if (path === "") return "it is empty";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(path)) return "it holds a control character or a line break";
  if (path.includes("\ufffd")) return "it is not valid UTF-8";
  if (path.includes("\\")) return "it holds a backslash; `/` separates folders";
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path)) return "it is absolute";
  if (path.startsWith("~")) return "it starts with `~`, which is not expanded here";
  if (path.split("/").includes("..")) return "it leads out of the folder with `..`";
  if (path.length > 1000 || path.split("/").some((part) => Buffer.byteLength(part) > 255)) return "it is too long";
  return null;
}

/** Why a glob cannot be used, or null when it can. */
export function globFault(glob: string): string | null {
  const fault = pathFault(glob);
  if (fault !== null) return fault;
  if (glob.length > globMaxLength) return `it is longer than ${globMaxLength} characters`;
  if (glob.startsWith("!")) return "it is a negation, which would match everything else";
  // Braces and groups can hide a way out: {..,x}/y
  if (/(^|[/{,(|])\.\.([/},)|]|$)/.test(glob)) return "it leads out of the folder with `..`";
  return null;
}

/** No leading `./`; a folder (`src/`) means everything below it. */
export function normalizeGlob(glob: string): string {
  const plain = glob.replace(/^(\.\/)+/, "");
  return plain.endsWith("/") ? `${plain}**` : plain;
}

/** No leading `./`, no trailing `/`; the folder itself is `.`. */
export function normalizePath(path: string): string {
  const plain = path.replace(/^(\.\/)+/, "").replace(/\/+$/, "");
  return plain === "" ? "." : plain;
}

/** Matches paths as the admission of candidates does: case counts, hidden files are files like others. */
export function pathMatcher(globs: readonly string[]): (path: string) => boolean {
  return globs.length === 0 ? () => false : picomatch(globs.map(normalizeGlob), { dot: true });
}

/** A glob for one existing path: characters that mean something in globs become `?`. */
export function globOfPath(path: string): string {
  return path.replaceAll(/[*?[\]{}()!+@|]/g, "?");
}

/** Whether a text holds anything that means more than itself in a glob. */
export function isGlob(text: string): boolean {
  return /[*?[\]{}()!+@|]/.test(text);
}
