import { existsSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import type { Environment } from "../core/protocol/environment.js";
import { workspacePlace } from "../research/engine/places.js";

/** How a baseline failed, and what it printed. */
export interface Failure {
  readonly status: string;
  readonly output: string;
}

/** What most likely has to be done about a baseline that gave no result: read from what it printed. */
export function hintsFor(folder: string, environment: Environment, failure: Failure): string[] {
  const { output, status } = failure;
  const hints = [
    ...missingModules(output, environment),
    ...missingFiles(output, folder),
    ...(network.test(output)
      ? ["stages have no network: download what it needs beforehand, keep it in a folder, and bind that with `--mount FOLDER`"]
      : []),
    ...(/Read-only file system|EROFS/.test(output)
      ? ["a stage can write in its workspace, in $TRIALIST_OUTPUT and in /tmp only: let the program write there"]
      : []),
    ...(/no CUDA-capable device|NVIDIA driver|CUDA is not available|Torch not compiled with CUDA/i.test(output)
      ? ["the stage had no GPU: write `gpus: 1` under its `limits`, or let the program run on the CPU"]
      : []),
    ...limitHints(status, output),
  ];
  if (status === "no_result" && hints.length === 0) hints.push(numberHint(output, environment));
  return [...new Set(hints)];
}

const network =
  /Name or service not known|Temporary failure in name resolution|nodename nor servname|getaddrinfo (ENOTFOUND|EAI_AGAIN)|Network is unreachable|ENETUNREACH|Could not resolve host|Failed to resolve/;

function missingModules(output: string, environment: Environment): string[] {
  const names = [
    ...output.matchAll(/No module named ['"]?([\w.]+)/g),
    ...output.matchAll(/Cannot find (?:module|package) ['"]([^'"\n./][^'"\n]*)['"]/g),
  ].map(([, name = ""]) => name);
  const [first] = names;
  if (first === undefined) return [];
  const use = environment.runtime?.kind === "prefix" ? environment.runtime.use : null;
  const packaged = /Cannot find/.test(output);
  const way = packaged
    ? "`npm install` it here, so that node_modules can be bound"
    : use === null
      ? "put it into an environment in .venv, or name one: `runtime: { use: VENV }`, or `runtime: { python: { lock: requirements.lock } }`"
      : `install it into ${use}, or name another prefix under \`runtime\``;
  return [`the runtime has no ${[...new Set(names)].slice(0, 5).join(", ")}: ${way}; then \`trialist init --force\``];
}

/** Paths that the program wanted: those that are here, and that its stage did not see, can be bound. */
function missingFiles(output: string, folder: string): string[] {
  const wanted = [
    ...output.matchAll(/No such file or directory: ['"]([^'"\n]+)['"]/g),
    ...output.matchAll(/ENOENT: no such file or directory, \w+ ['"]([^'"\n]+)['"]/g),
    ...output.matchAll(/(?:can't open|cannot open|can't cd to|cannot access) (?:file )?['"]?([^'":\n]+)['"]?/g),
    ...output.matchAll(/^[^:\n]*: (?:line \d+: )?([^:\s][^:\n]*): No such file or directory$/gm),
  ].map(([, path = ""]) => path.replace(new RegExp(`^${workspacePlace}/`), "").trim());
  return [...new Set(wanted)]
    .filter((path) => path !== "" && !path.startsWith("-"))
    .slice(0, 3)
    .flatMap((path) => {
      const place = isAbsolute(path) ? path : join(folder, path);
      if (!existsSync(place)) return [`${path} is not on this machine either: make it first, or correct the path`];
      const bound = statSync(place).isDirectory() ? path : dirname(path);
      if (bound === ".")
        return [
          `${path} is here and git ignores it: name it under \`surface.context\`, or move it into a folder and bind that with \`--mount\``,
        ];
      return [
        `${path} is here, and a stage does not see it: git ignores it, or it lies outside of the folder. \`trialist init --force --mount ${bound}\` binds it read-only`,
      ];
    });
}

function limitHints(status: string, output: string): string[] {
  if (status === "timed_out") return ["give it longer: `trialist init --force --wall '2 h'`"];
  if (/\b(MemoryError|out of memory|Cannot allocate memory)\b/i.test(output) || (status === "over_budget" && /memory/.test(output)))
    return ["give the stage more `memory` under `limits`"];
  return [];
}

/** Numbers that the output does hold, by their names. */
function numberHint(output: string, environment: Environment): string {
  const metric = environment.metrics[0]?.name ?? "";
  const seen = [...output.matchAll(/(?:^|[\s,{"'])([A-Za-z][\w.@-]{0,40})["']?[ \t]*[:=][ \t]*[-+]?\d/gm)].map(([, name = ""]) => name);
  const names = [...new Set(seen)].slice(-8);
  return names.length === 0
    ? `the output holds no number with a name: let the program print \`${metric}: 0.123\`, or write a JSON file and give --metric-file`
    : `the output names these numbers: ${names.join(", ")}; give one with --metric, or say how it is found with --pattern`;
}
