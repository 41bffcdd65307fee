import type { RolePrompt } from "../../core/ports/researcher.js";

/**
 * Prompts are made of sections, each with a budget in bytes of its own, so that a prompt is bounded whatever the age of
 * the run and a long traceback never drives out the code. What does not fit is dropped by the section's rule, and the
 * prompt says that something was dropped.
 */
export interface Section {
  readonly title: string;
  readonly text: string;
  /** Most UTF-8 bytes of the text, the note about what was dropped included. */
  readonly bytes: number;
  /** What is dropped first: the end of the text, or its middle. */
  readonly drop: "end" | "middle";
}

const encoder = new TextEncoder();
const note = "\n[… cut to fit …]\n";
/** Fewest bytes of a section that is cut. */
const smallest = 64;

/** The sections as one text; empty ones are left out. */
export function assemble(sections: readonly Section[]): string {
  return sections
    .filter(({ text }) => text.trim() !== "")
    .map((section) => `# ${section.title}\n\n${fitted(section)}\n`)
    .join("\n");
}

/** The sections with their budgets cut in proportion, so that all fit into so many bytes; each keeps a little. */
export function shrunk(sections: readonly Section[], room: number): Section[] {
  const used = sections.map((section) => ({ ...section, bytes: Math.min(section.bytes, byteLength(section.text)) }));
  const total = assembledBytes(used);
  if (total <= room) return [...sections];
  const kept = used.map((section) => ({ ...section, bytes: Math.min(section.bytes, smallest) }));
  const share = Math.max(0, room - assembledBytes(kept)) / Math.max(1, total - assembledBytes(kept));
  return used.map((section, index) => {
    const least = kept[index]?.bytes ?? 0;
    return { ...section, bytes: least + Math.floor((section.bytes - least) * share) };
  });
}

/** Most bytes that `assemble` makes of sections with these budgets. */
export function assembledBytes(sections: readonly Pick<Section, "title" | "bytes">[]): number {
  return sections.reduce((total, { title, bytes }) => total + byteLength(`# ${title}\n\n\n\n`) + bytes, 0);
}

function fitted({ text, bytes, drop }: Section): string {
  if (byteLength(text) <= bytes) return text;
  const room = bytes - byteLength(note);
  if (drop === "end") return firstBytes(text, room) + note;
  const half = Math.floor(room / 2);
  return firstBytes(text, half) + note + lastBytes(text, half);
}

/** Entries in their order, the first dropped first, so that the newest stay. */
export function newestThatFit(entries: readonly string[], bytes: number): string {
  const kept: string[] = [];
  let room = bytes;
  for (const entry of [...entries].reverse()) {
    room -= byteLength(entry) + 1;
    if (room < 0) break;
    kept.unshift(entry);
  }
  return kept.join("\n");
}

/** Files whole while they fit, in order; of those that do not, the names. */
export function filesThatFit(files: Readonly<Record<string, string>>, bytes: number): string {
  const shown: string[] = [];
  const left: string[] = [];
  // Room for the names of what is left out.
  let room = bytes - 2048;
  for (const [path, text] of Object.entries(files)) {
    const entry = `<file path=${JSON.stringify(path)}>\n${text}\n</file>`;
    if (byteLength(entry) + 1 <= room) {
      shown.push(entry);
      room -= byteLength(entry) + 1;
    } else left.push(`${path} (${byteLength(text)} bytes)`);
  }
  const names = firstBytes(left.join(", "), 1900);
  return [...shown, ...(left.length === 0 ? [] : [`Too large to be shown here: ${names}`])].join("\n");
}

export function byteLength(text: string): number {
  return encoder.encode(text).byteLength;
}

/** The beginning of a text, at most so many bytes, never half a character. */
export function firstBytes(text: string, bytes: number): string {
  const encoded = encoder.encode(text);
  if (encoded.byteLength <= bytes) return text;
  let end = Math.max(0, bytes);
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return new TextDecoder().decode(encoded.subarray(0, end));
}

function lastBytes(text: string, bytes: number): string {
  const encoded = encoder.encode(text);
  let start = Math.max(0, encoded.byteLength - bytes);
  while (start < encoded.byteLength && ((encoded[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return new TextDecoder().decode(encoded.subarray(start));
}

/** Most bytes of the earlier answer and of what was wrong with it that a repair shows. */
export const repairBudget = { answer: 16 * 1024, message: 4 * 1024 };

/** The round after a refusal: what came, and what was wrong with it. */
export function repairOf(
  answer: string | null,
  violations: readonly { readonly code: string; readonly message: string; readonly path: string | null }[],
): RolePrompt["repair"] {
  if (answer === null || violations.length === 0) return null;
  const wrong = violations.map(({ message, path }) => `- ${path === null ? "" : `${path}: `}${message}`).join("\n");
  const message = `That answer was not accepted:\n${wrong}\n\nAnswer again, whole, with that mended.`;
  return {
    answer: fitted({ title: "", text: answer, bytes: repairBudget.answer, drop: "middle" }),
    message: fitted({ title: "", text: message, bytes: repairBudget.message, drop: "middle" }),
  };
}
