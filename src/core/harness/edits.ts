import type { Violation } from "../protocol/events.js";
import { type Edit, violation } from "./admission.js";

/**
 * Applies edits in order; each sees the text that the one before left.
 * @param textOf text of a file before the edits; undefined where there is none
 * @returns the new texts by path, or what is wrong, in words that tell how to mend it
 */
export function applyEdits(edits: readonly Edit[], textOf: (path: string) => string | undefined): Map<string, string> | Violation[] {
  const texts = new Map<string, string>();
  const problems: Violation[] = [];
  for (const edit of edits) {
    const text = texts.get(edit.path) ?? textOf(edit.path);
    const applied = applyEdit(edit, text);
    if (typeof applied === "string") texts.set(edit.path, applied);
    else problems.push(applied);
  }
  return problems.length > 0 ? problems : texts;
}

function applyEdit({ path, search, replace }: Edit, text: string | undefined): string | Violation {
  if (search === "") {
    if (text === undefined) return replace;
    return violation("edit_no_match", "search is empty and the file exists: give the passage to replace, or the file as a whole", path);
  }
  if (text === undefined)
    return violation("edit_no_match", "there is no such file to edit: give it as a whole, or with an empty search", path);
  const places = placesOf(text, search);
  if (places.length === 1) return text.slice(0, places[0]) + replace + text.slice((places[0] ?? 0) + search.length);
  if (places.length === 0) return violation("edit_no_match", noMatch(text, search), path);
  const lines = places.slice(0, 5).map((place) => lineOf(text, place));
  const more = places.length > 5 ? " and more" : "";
  return violation(
    "edit_ambiguous",
    `search occurs ${places.length} times, at lines ${lines.join(", ")}${more}: add lines around it until it occurs once`,
    path,
  );
}

function placesOf(text: string, search: string): number[] {
  const places: number[] = [];
  for (let place = text.indexOf(search); place >= 0 && places.length < 1000; place = text.indexOf(search, place + 1)) places.push(place);
  return places;
}

/** What helps most is the line that was meant. */
function noMatch(text: string, search: string): string {
  const advice = "search must be copied exactly, spaces and line breaks included";
  const wanted =
    search
      .split("\n")
      .find((line) => line.trim() !== "")
      ?.trim() ?? "";
  const lines = text.split("\n");
  const near = lines.findIndex((line) => line.trim() === wanted);
  if (wanted === "" || near < 0) return `search does not occur in the file: ${advice}`;
  return `search does not occur in the file, though line ${near + 1} is ${JSON.stringify(lines[near]?.slice(0, 200))}: ${advice}`;
}

function lineOf(text: string, place: number): number {
  return text.slice(0, place).split("\n").length;
}
