import { readFileSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { Header } from "tar";
import { digestOf } from "../../src/core/protocol/canonical.js";
import { type Packet, packet } from "../../src/core/protocol/packet.js";
import { scriptedResearcher, type Words } from "./lab.js";

/** One entry of an archive, as somebody may have made it. */
export interface Entry {
  readonly path: string;
  readonly bytes: Buffer;
  readonly type?: "File" | "SymbolicLink" | "Link" | "CharacterDevice" | "FIFO" | "Directory";
  readonly linkpath?: string;
}

/** The regular files of a packet, in their order. */
export function entriesOf(file: string): Entry[] {
  const tar = gunzipSync(readFileSync(file));
  const entries: Entry[] = [];
  let longPath: string | null = null;
  for (let at = 0; at < tar.length; ) {
    const header = new Header(tar, at);
    if (!header.path) break;
    const size = header.size ?? 0;
    const bytes = Buffer.from(tar.subarray(at + 512, at + 512 + size));
    if (header.type === "ExtendedHeader") longPath = / path=(.*)\n/.exec(bytes.toString("utf8"))?.[1] ?? null;
    else {
      entries.push({ path: longPath ?? header.path, bytes });
      longPath = null;
    }
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return entries;
}

/** An archive with these entries, whatever they are. */
export function archiveOf(entries: readonly Entry[]): Buffer {
  const blocks = entries.flatMap(({ path, bytes, type = "File", linkpath }) => {
    const block = Buffer.alloc(512);
    const size = type === "File" ? bytes.length : 0;
    new Header({ path, size, mode: 0o644, type, mtime: new Date(0), ...(linkpath === undefined ? {} : { linkpath }) }).encode(block);
    const padding = Buffer.alloc((512 - (size % 512)) % 512);
    return type === "File" ? [block, bytes, padding] : [block];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

/** A packet with some files changed (null: removed), and `packet.json` made to fit them, as a forger would. */
export function forge(
  source: string,
  target: string,
  files: Readonly<Record<string, string | null>>,
  change: (claims: Packet) => Packet = (claims) => claims,
): void {
  const entries = new Map(entriesOf(source).map(({ path, bytes }) => [path, bytes]));
  for (const [path, text] of Object.entries(files)) {
    if (text === null) entries.delete(`packet/${path}`);
    else entries.set(`packet/${path}`, Buffer.from(text));
  }
  const claims = packet.parse(JSON.parse((entries.get("packet/packet.json") ?? Buffer.alloc(0)).toString("utf8")));
  entries.delete("packet/packet.json");
  const named = [...entries].map(([path, bytes]) => ({ path: path.slice("packet/".length), bytes: bytes.length, digest: digestOf(bytes) }));
  const text = JSON.stringify(change({ ...claims, files: named }));
  entries.set("packet/packet.json", Buffer.from(text));
  writeFileSync(target, archiveOf([...entries].map(([path, bytes]) => ({ path, bytes }))));
}

/** A program that predicts this number, and a little that depends on the seed, for every id. */
export const predict = (value: number): string =>
  `for id in $(cat $TRIALIST_DATA/ids.txt); do echo "$id,$((${value} + TRIALIST_SEED % 7))"; done > $TRIALIST_OUTPUT/predictions.csv\n`;

/** The mean distance from the labels, with one record per id. */
const evaluate = `awk -F, -v labels="$TRIALIST_LABELS/labels.csv" '
  FILENAME == labels { label[$1] = $2; next }
  $1 in label { ids = ids comma "\\"" $1 "\\""; gap = $2 - label[$1]; if (gap < 0) gap = -gap; values = values comma gap; comma = ","; sum += gap; n += 1 }
  END { printf "{\\"metrics\\":{\\"gap\\":%s},\\"records\\":{\\"metric\\":\\"gap\\",\\"ids\\":[%s],\\"values\\":[%s]}}", sum / n, ids, values }
  ' "$TRIALIST_LABELS/labels.csv" "$TRIALIST_ARTIFACTS/predictions.csv" > "$TRIALIST_MEASUREMENT"
`;

/** What each folder of data holds. */
export const labelled = {
  "public/ids.txt": "a\nb\nc\nd\n",
  "inloop/labels.csv": "a,100\nb,110\n",
  "heldout/labels.csv": "c,7120\nd,7130\n",
};

function contract(name: string, data: string): string {
  return `schema: trialist/environment@1
name: ${name}
surface: { editable: ["main.sh", "parts/**"] }
data: ${data}
stages:
  - { name: train, run: sh main.sh, outputs: [predictions.csv] }
  - { name: measure, trust: evaluator, run: sh evaluate.sh }
  - { name: final, trust: held-out, run: sh evaluate.sh, purpose: held-out }
metrics: [{ name: gap, direction: minimize }]
noise: { calibrate: 2 }
promotion: { rule: confirmed, confirmations: 2 }
`;
}

/** Two environments that differ in where their data is from: `brought` has it in its folder, `prepared` makes it. */
export function predictionPacks(seed: number, words: readonly Words[]): Record<string, string> {
  const common = {
    "evaluate.sh": evaluate,
    "baseline/main.sh": predict(900),
    "baseline/parts/old \u00e9.sh": "echo old\n",
    ...scriptedResearcher(seed, words),
  };
  const prepare = Object.entries(labelled)
    .map(([path, text]) => `mkdir -p $1/${path.slice(0, path.indexOf("/"))}; printf '${text.replaceAll("\n", "\\n")}' > $1/${path}\n`)
    .join("");
  const under = (folder: string, files: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(files).map(([path, text]) => [`${folder}/${path}`, text]));
  const ready = "{ public: data/public, inloop: data/inloop, heldout: data/heldout }";
  return {
    ...under("brought", { ...common, "environment.yaml": contract("brought", ready) }),
    ...under("brought/data", labelled),
    ...under("prepared", {
      ...common,
      "environment.yaml": contract("prepared", "{ prepare: prepare.sh }"),
      "prepare.sh": `#!/bin/sh\n${prepare}`,
    }),
  };
}
