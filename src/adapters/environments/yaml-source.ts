import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import type { Problem } from "./problems.js";

/** Path of a value inside the document. */
export type DocumentPath = readonly PropertyKey[];

/** A YAML text with its values and the place of each of them. */
export interface YamlSource {
  readonly file: string;
  /** Problems of the YAML itself; the value is then not to be trusted. */
  readonly problems: readonly Problem[];
  readonly value: unknown;
  /** Place of the value at a path; of its nearest parent that exists when it does not. */
  placeOfValue(path: DocumentPath): { line: number; column: number };
  /** Place of a key in the mapping at a path. */
  placeOfKey(path: DocumentPath, key: string): { line: number; column: number };
}

function nodeAt(document: Document.Parsed, path: DocumentPath): Node | null {
  let node: unknown = document.contents;
  let nearest: Node | null = isNode(node) ? node : null;
  for (const step of path) {
    if (isMap(node)) node = node.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === String(step))?.value;
    else if (isSeq(node)) node = node.items[Number(step)];
    else break;
    if (isNode(node)) nearest = node;
  }
  return nearest;
}

function keyNode(document: Document.Parsed, path: DocumentPath, key: string): Node | null {
  const map = nodeAt(document, path);
  if (!isMap(map)) return map;
  const pair = map.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
  return pair !== undefined && isNode(pair.key) ? pair.key : map;
}

/** Reads a YAML text. Custom tags are refused, and so is a key that is written twice. */
export function readYaml(file: string, text: string): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, logLevel: "silent" });
  const place = (offset: number): { line: number; column: number } => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const placeOfNode = (node: Node | null): { line: number; column: number } => place(node?.range?.[0] ?? 0);
  const problems = [...document.errors, ...document.warnings].map(
    (error): Problem => ({
      file,
      ...place(error.pos[0]),
      what: error.code === "DUPLICATE_KEY" ? "a key is written twice" : "this is not valid YAML",
      expected: error.code === "DUPLICATE_KEY" ? "every key once" : "YAML 1.2",
      found: error.message.split("\n")[0] ?? error.code,
      todo: error.code === "DUPLICATE_KEY" ? "remove one of the two" : "check indentation, quotes and brackets here and on the line above",
    }),
  );
  return {
    file,
    problems,
    value: problems.length > 0 ? null : toPlainValue(document),
    placeOfValue: (path) => placeOfNode(nodeAt(document, path)),
    placeOfKey: (path, key) => placeOfNode(keyNode(document, path, key)),
  };
}

function toPlainValue(document: Document.Parsed): unknown {
  return document.toJS({ maxAliasCount: 100 }) as unknown;
}
