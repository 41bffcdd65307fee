import { lstat, readFile } from "node:fs/promises";
import { join } from "node:path";
import { literalKeys, numberKeys } from "./init-metric-keys.js";
import type { SourceFile } from "./init-sources.js";

/** A number that a program seems to report. */
export interface MetricGuess {
  readonly name: string;
  /** JSON file that it is written to; null when it is printed. */
  readonly file: string | null;
  readonly points: number;
  readonly why: string;
}

/** Largest result of an earlier run that is looked at, in bytes. */
const resultBytes = 2 ** 20;

const plainName = /^[A-Za-z][A-Za-z0-9_.@-]{0,59}$/;
const metricWord =
  /loss|acc|auc|f1|score|mse|mae|rmse|r2|perplexity|ppl|bpb|bits|bleu|rouge|reward|return|precision|recall|ops|throughput|latency|second|elapsed|time|error|metric|fitness|objective|quality|per_sec|rate$/i;
const noMetric =
  /^(epoch|step|iter|iteration|lr|learning_rate|seed|batch|batch_size|device|file|path|name|version|size|shape|round|run|repeat|repetition|worker|thread|length|total|saved|saving|using|loading|loaded|usage|warning|error|info|n|count|config|args|model|date|host|commit|params)s?$/i;

/** The numbers that a program prints or writes into JSON files, the likeliest first. Reads texts; nothing is run. */
export async function findMetrics(folder: string, program: readonly SourceFile[]): Promise<MetricGuess[]> {
  const found = new Map<string, MetricGuess>();
  const add = (guess: MetricGuess): void => {
    const key = `${guess.name}\n${guess.file ?? ""}`;
    if (!plainName.test(guess.name) || noMetric.test(guess.name)) return;
    if ((found.get(key)?.points ?? -1) < guess.points) found.set(key, guess);
  };
  for (const { path, text } of program) {
    for (const { name, place } of printedNames(text)) add({ name, file: null, points: pointsOf(name, place), why: `${path} prints it` });
    for (const file of writtenFiles(text)) {
      const { keys, why } = await keysOf(folder, file, path, text);
      // A file has all digits, and nothing else that is printed can be taken for it.
      for (const name of keys) add({ name, file, points: pointsOf(name, 1) + 5, why });
    }
  }
  return [...found.values()].sort((a, b) => b.points - a.points || (a.name < b.name ? -1 : 1));
}

/** `place`: how far down in its file it stands, from 0 to 1; what is printed last is what a program ends with. */
function pointsOf(name: string, place: number): number {
  const last = name.split(".").at(-1) ?? name;
  let points = metricWord.test(last) ? 20 : 4;
  if (/(^|[._-])(val|valid|validation|test|eval|dev)/i.test(name)) points += 12;
  if (/(^|[._-])(best|final|mean|total|median)/i.test(name)) points += 5;
  if (/(^|[._-])train/i.test(name)) points -= 10;
  return points + 5 * place;
}

const printing =
  /(?:\bprint|console\.log|process\.stdout\.write|sys\.stdout\.write|\bputs|\bcat|\bprintf|\becho)\b\s*\(?\s*(?:-[en]+\s+)?[frbuFRBU]{0,2}(?:(["'`])((?:\\.|(?!\1)[^\\]){1,2000}?)\1|([A-Za-z][\w.@-]*[=:][^\n]*))/g;

/** Labels before a number: `val_loss: {x:.3f}`, `score=%d`, `"score:", x`, and the names of a printed JSON object. */
function printedNames(text: string): { name: string; place: number }[] {
  const found: { name: string; place: number }[] = [];
  const place = (at: number): number => at / Math.max(1, text.length);
  for (const { 2: quoted, 3: bare, index } of text.matchAll(printing)) {
    const line = text.slice(index, index + 2000).split("\n", 1)[0] ?? "";
    const others = [...line.matchAll(/,\s*(["'`])([^"'`]*[:=]\s*)\1\s*,/g)].map(([, , said = ""]) => said);
    for (const name of [quoted ?? bare ?? "", ...others].flatMap(labelsIn)) found.push({ name, place: place(index) });
  }
  for (const { index, 0: head } of text.matchAll(/(?:print\s*\(\s*json\.dumps|console\.log\s*\(\s*JSON\.stringify)\s*\(\s*/g)) {
    for (const name of keysAt(text, index + head.length)) found.push({ name, place: place(index) });
  }
  return found;
}

// What follows a brace at once is a value with its format, as in `{loss:.4f}`, and no label.
const qualifier = "(?:cv|val|valid|validation|test|eval|dev|train|training|best|final|mean|average|avg|total)";
const label = new RegExp(
  `(?<![\\w.@{-])(?:(${qualifier})[ _-])?([A-Za-z][\\w.@-]*)["']?(?:[ \\t]*[:=][ \\t]*(?=[{%$"'\`\\d.-]|\\\\n|$)|[ \\t]+(?=[{%$]))`,
  "gi",
);

/** `val_loss: {x}`, `score=%d`, `score:` at the end, and `val loss {x}`, which is found as `val_loss`; without a sign only words of a metric. */
function labelsIn(text: string): string[] {
  return [...text.matchAll(label)].flatMap(([whole, before, word = ""]) => {
    if (!/[:=]/.test(whole) && !metricWord.test(word)) return [];
    return [before === undefined || !metricWord.test(word) ? word : `${before.toLowerCase()}_${word}`];
  });
}

/** Names of the literal that stands there, or of the variable's last literal. */
function keysAt(text: string, at: number): string[] {
  if (text[at] === "{") return literalKeys(text, at);
  const variable = /^[A-Za-z_]\w*/.exec(text.slice(at, at + 100))?.[0];
  return variable === undefined ? [] : keysOfVariable(text, variable);
}

function keysOfVariable(text: string, variable: string): string[] {
  const literal = [...text.matchAll(new RegExp(`\\b${variable}\\s*(?::[^=\\n]{1,80})?=\\s*(?=\\{)`, "g"))].at(-1);
  const names = literal === undefined ? [] : literalKeys(text, literal.index + literal[0].length);
  const set = [...text.matchAll(new RegExp(`\\b${variable}\\[["']([^"'\\n]+)["']\\]\\s*=`, "g"))].map(([, name = ""]) => name);
  return [...names, ...set];
}

/** Literal paths of JSON files in a text that writes JSON. */
function writtenFiles(text: string): string[] {
  if (!/json\.dumps?\b|JSON\.stringify|to_json\b/.test(text)) return [];
  const joined = text.replaceAll(/(?:os\.path\.|path\.)?join\(((?:\s*["'][^"'\n{}]+["']\s*,?)+)\)/g, (_, parts: string) => {
    return `"${[...parts.matchAll(/["']([^"'\n]+)["']/g)].map(([, part]) => part).join("/")}"`;
  });
  const slashed = joined.replaceAll(/Path\(\s*["']([^"'\n{}]+)["']\s*\)\s*\/\s*["']([^"'\n{}]+)["']/g, '"$1/$2"');
  const written = slashed.matchAll(
    /["'`]([\w./ -]{1,200}\.(?:json|jsonl|ndjson))["'`]\s*(?:,\s*["'`]?[wa]|\)\s*\.(?:write_text|open\(\s*["'][wa])|,)/g,
  );
  const files = [...written].map(([, path = ""]) => path.replace(/^(\.\/)+/, ""));
  return [...new Set(files)].filter(
    (path) => !path.startsWith("/") && !path.split("/").includes("..") && !/(package|tsconfig)\.json$/.test(path),
  );
}

async function keysOf(folder: string, file: string, path: string, text: string): Promise<{ keys: string[]; why: string }> {
  const facts = await lstat(join(folder, file)).catch(() => null);
  const earlier = facts?.isFile() === true && facts.size <= resultBytes ? await readFile(join(folder, file), "utf8").catch(() => "") : "";
  const measured = numberKeys(earlier);
  if (measured.length > 0) return { keys: measured, why: `${path} writes ${file}, which holds it from an earlier run` };
  const dumped = [...text.matchAll(/(?:json\.dumps?|JSON\.stringify)\s*\(\s*/g)].flatMap(({ index, 0: head }) =>
    keysAt(text, index + head.length),
  );
  return { keys: dumped, why: `${path} writes it to ${file}` };
}
