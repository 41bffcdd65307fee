import { readFile, stat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import type { ContractForm } from "./contract.js";
import { listFolder } from "./folder-files.js";
import { normalizeGlob, normalizePath, pathFault, pathMatcher } from "./globs.js";
import { lockFaults } from "./lock-file.js";
import { scriptsOf } from "./pack-commands.js";
import { candidateFiles, contractFile, isDescriptionFile, type PackLayout } from "./pack-layout.js";
import { checkParameters } from "./parameter-checks.js";
import type { Problem } from "./problems.js";
import { closest, didYouMean } from "./suggestions.js";
import type { DocumentPath, YamlSource } from "./yaml-source.js";

/** Largest pack, and largest surface: beyond it something is in the folder that does not belong there. */
const packMost = { files: 20_000, bytes: 256 * 2 ** 20, inWords: "20,000 files and 256 MiB" };
/** A repository with all that git does not ignore is larger than a pack that was made as one. */
const repositoryMost = { files: 200_000, bytes: 20 * 2 ** 30, inWords: "200,000 files and 20 GiB" };
const surfaceMaxFiles = 2_000;
const textMaxBytes = 2 ** 20;

type Words = Pick<Problem, "what" | "expected" | "found" | "todo">;

/** What the checks look at, and where they say what is wrong. */
export class Checks {
  readonly problems: Problem[] = [];

  constructor(
    readonly form: ContractForm,
    readonly layout: PackLayout,
    private readonly source: YamlSource,
  ) {}

  /** A problem of what environment.yaml says. */
  at(path: DocumentPath, words: Words): void {
    this.problems.push({ file: this.source.file, ...this.source.placeOfValue(path), ...words });
  }

  /** A problem of another file of the pack. */
  inFile(path: string, words: Words, line: number | null = null): void {
    this.problems.push({ file: join(this.layout.folder, path), line, column: line === null ? null : 1, ...words });
  }
}

/** Everything about an environment that only its files, or two places of the contract together, can show. */
export async function checkEnvironment(checks: Checks): Promise<void> {
  checkNamesOfFiles(checks);
  checkIntruders(checks);
  checkSize(checks);
  checkEditable(checks);
  checkWritable(checks);
  checkCandidates(checks);
  checkNamedFiles(checks);
  checkScripts(checks);
  checkStages(checks);
  checkMetrics(checks);
  checkGates(checks);
  checkPromotion(checks);
  await checkParameters(checks);
  await checkLocks(checks);
  await checkFolders(checks);
}

function checkNamesOfFiles(checks: Checks): void {
  for (const path of [...checks.layout.files.keys(), ...checks.layout.intruders.map((each) => each.path)]) {
    const fault = pathFault(path);
    if (fault === null) continue;
    const shown = JSON.stringify(path);
    checks.problems.push({
      file: join(checks.layout.folder, shown),
      line: null,
      column: null,
      what: `the file name ${shown} cannot be used: ${fault}`,
      expected: "names without control characters, line breaks or backslashes, in UTF-8",
      found: shown,
      todo: "rename the file, or move it out of the folder",
    });
  }
}

function checkIntruders(checks: Checks): void {
  const { form, layout } = checks;
  const surface = pathMatcher(form.surface.editable);
  const folders = [form.baseline, ...Object.values(form.references ?? {})].map(normalizePath);
  for (const intruder of layout.intruders.filter((each) => pathFault(each.path) === null)) {
    const inSurface = folders.some((folder) => (folder === "." ? surface(intruder.path) : intruder.path.startsWith(`${folder}/`)));
    checks.inFile(intruder.path, {
      what: `${intruder.path} is ${intruder.what}`,
      expected: inSurface ? "regular files alone in the candidate's surface" : "regular files alone in the environment's folder",
      found: intruder.leadsTo === null ? intruder.what : `${intruder.what}, to ${intruder.leadsTo}`,
      todo:
        intruder.leadsTo === null ? "move it out of the folder" : "copy the file in its place, or name its folder under `mounts` or `data`",
    });
  }
  for (const file of layout.files.values()) {
    const inSurface = folders.some((folder) => (folder === "." ? surface(file.path) : file.path.startsWith(`${folder}/`)));
    if (!inSurface || file.source === file.path) continue;
    checks.inFile(file.path, {
      what: `${file.path} is a symbolic link`,
      expected: "regular files alone in the candidate's surface",
      found: `a symbolic link to ${file.source}`,
      todo: "copy the file in its place",
    });
  }
}

function checkSize(checks: Checks): void {
  const files = [...checks.layout.files.values()];
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const most = checks.layout.own ? repositoryMost : packMost;
  if (files.length <= most.files && bytes <= most.bytes) return;
  const largest = [...files].sort((a, b) => b.bytes - a.bytes).slice(0, 3);
  checks.at(checks.layout.own ? ["surface"] : ["baseline"], {
    what: "the environment's folder holds too much to be frozen",
    expected: `at most ${most.inWords}`,
    found: `${files.length} files, ${bytes} bytes; the largest: ${largest.map((file) => `${file.path} (${file.bytes} bytes)`).join(", ")}`,
    todo: checks.layout.own
      ? "let git ignore what the program does not need, or list what it needs under surface.context; put data under data.public or mounts"
      : "put data under data.public or mounts",
  });
}

function checkEditable(checks: Checks): void {
  const { form, layout } = checks;
  const candidates = [form.baseline, ...Object.values(form.references ?? {})].map((path) => `${normalizePath(path)}/`);
  const outside = layout.own
    ? [...layout.trusted]
    : [
        contractFile,
        ...layout.trusted,
        ...[...layout.files.keys()].filter((path) => !candidates.some((folder) => path.startsWith(folder))),
      ];
  for (const [index, glob] of form.surface.editable.entries()) {
    const matches = pathMatcher([glob]);
    const caught = [...new Set(outside)].filter(matches);
    if (caught.length === 0) continue;
    const measuring = caught.filter((path) => layout.trusted.has(path));
    const example = measuring[0] ?? caught[0];
    checks.at(["surface", "editable", index], {
      what: `the editable glob \`${glob}\` matches ${example}`,
      expected: "globs that match files of the candidate alone, never what measures it",
      found: caught.slice(0, 5).join(", "),
      todo: layout.own
        ? "name the files that may be edited one by one"
        : `name the files, or a folder of the baseline, such as \`${candidateFiles(layout, form, form.baseline).matching[0]?.path ?? "solution.py"}\``,
    });
  }
}

function checkWritable(checks: Checks): void {
  const { form, layout } = checks;
  for (const [index, path] of (form.surface.writable ?? []).entries()) {
    if (!layout.files.has(normalizePath(path))) continue;
    checks.at(["surface", "writable", index], {
      what: `${path} is a file`,
      expected: "folders alone",
      found: path,
      todo: "name the folder that it lies in",
    });
  }
}

function checkCandidates(checks: Checks): void {
  checkCandidate(checks, checks.form.baseline, ["baseline"]);
  for (const [name, path] of Object.entries(checks.form.references ?? {})) {
    if (normalizePath(path) === ".")
      checks.at(["references", name], {
        what: `the reference \`${name}\` has no folder of its own`,
        expected: "a folder with the reference's files",
        found: path,
        todo: "put its files into a folder, such as references/NAME",
      });
    else checkCandidate(checks, path, ["references", name]);
  }
}

function checkCandidate(checks: Checks, folder: string, where: DocumentPath): void {
  const { form, layout } = checks;
  const { matching, others } = candidateFiles(layout, form, folder);
  const globs = form.surface.editable.join(", ");
  if (normalizePath(folder) !== ".") {
    for (const path of others.filter((other) => layout.files.get(other)?.source === other).slice(0, 10)) {
      checks.inFile(path, {
        what: `${path} lies in the candidate's folder and is not editable`,
        expected: `files that match ${globs}`,
        found: path,
        todo: "add it to surface.editable, or move it out of that folder",
      });
    }
  }
  if (matching.length === 0) {
    const first = form.surface.editable[0] ?? "";
    const known = [...layout.files.keys()].map((path) =>
      normalizePath(folder) === "." ? path : path.slice(normalizePath(folder).length + 1),
    );
    checks.at(normalizePath(folder) === "." ? ["surface", "editable"] : where, {
      what: `no file of ${folder} matches the editable globs`,
      expected: `at least one file that matches ${globs}`,
      found: others.length === 0 ? "no file at all" : others.slice(0, 5).join(", "),
      todo: didYouMean(first, known, "correct the globs or the folder; a file that git ignores counts only when it is named exactly"),
    });
  }
  checkSurfaceSize(checks, matching, folder, where);
  checkTwins(
    checks,
    matching.map((file) => file.path),
    where,
  );
}

function checkSurfaceSize(checks: Checks, files: readonly { bytes: number }[], folder: string, where: DocumentPath): void {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const most = checks.form.surface.max_bytes;
  if (bytes > most)
    checks.at(where, {
      what: `the editable files of ${folder} are larger than a candidate may be`,
      expected: `at most ${most} bytes (surface.max_bytes)`,
      found: `${bytes} bytes`,
      todo: "raise surface.max_bytes, or narrow surface.editable",
    });
  if (files.length > surfaceMaxFiles)
    checks.at(where, {
      what: `too many editable files in ${folder}`,
      expected: `at most ${surfaceMaxFiles} files`,
      found: `${files.length} files`,
      todo: "narrow surface.editable",
    });
}

/** Two names that some file systems take for one would be one file after `apply`. */
function checkTwins(checks: Checks, paths: readonly string[], where: DocumentPath): void {
  const seen = new Map<string, string>();
  for (const path of paths) {
    const folded = path.normalize("NFC").toLowerCase();
    const twin = seen.get(folded);
    seen.set(folded, path);
    if (twin !== undefined)
      checks.at(where, {
        what: `${JSON.stringify(twin)} and ${JSON.stringify(path)} differ only in case or in Unicode form`,
        expected: "names that every file system can tell apart",
        found: `${JSON.stringify(twin)}, ${JSON.stringify(path)}`,
        todo: "rename one of the two",
      });
  }
}

function missing(checks: Checks, file: string, where: DocumentPath): void {
  const near = closest(file, [...checks.layout.files.keys()]);
  checks.at(where, {
    what: `there is no file ${file}`,
    expected: `a regular file ${file} in ${checks.layout.folder}`,
    found: "nothing there",
    todo: near === null ? "create it, or correct the name" : `did you mean \`${near}\`?`,
  });
}

function checkNamedFiles(checks: Checks): void {
  const { form, layout } = checks;
  const named: [string | undefined, DocumentPath][] = [
    [isDescriptionFile(form.description) ? form.description : undefined, ["description"]],
    [form.data?.prepare, ["data", "prepare"]],
    [form.data?.prepare_runtime, ["data", "prepare_runtime"]],
    [form.runtime?.python?.lock, ["runtime", "python", "lock"]],
  ];
  for (const [file, where] of named) if (file !== undefined && !layout.files.has(normalizePath(file))) missing(checks, file, where);
  for (const [index, glob] of (form.knowledge ?? []).entries()) {
    const matches = pathMatcher([glob]);
    const found = [...layout.files.values()].filter((file) => matches(file.path));
    if (found.length === 0) missing(checks, glob, ["knowledge", index]);
    for (const file of found)
      if (file.bytes > textMaxBytes)
        checks.at(["knowledge", index], {
          what: `${file.path} is too long to be shown to a researcher`,
          expected: `at most ${textMaxBytes} bytes of text`,
          found: `${file.bytes} bytes`,
          todo: "shorten it",
        });
  }
  if (form.data?.prepare_runtime !== undefined && form.data.prepare === undefined) {
    checks.at(["data", "prepare_runtime"], {
      what: "`prepare_runtime` has nothing to run",
      expected: "`prepare` beside it",
      found: "no `prepare`",
      todo: "add `prepare: prepare.py`, or remove `prepare_runtime`",
    });
  }
}

function checkScripts(checks: Checks): void {
  const { form, layout } = checks;
  const beside = new Set([
    ...layout.context.map((file) => file.path),
    ...candidateFiles(layout, form, form.baseline).matching.map((file) => file.path),
  ]);
  for (const [index, stage] of form.stages.entries()) {
    for (const script of scriptsOf(stage.run)) {
      const where = ["stages", index, "run"];
      if (stage.trust === "candidate" ? beside.has(script) : layout.files.has(script)) continue;
      if (stage.trust !== "candidate" || !layout.files.has(script)) missing(checks, script, where);
      else
        checks.at(where, {
          what: `${script} is not in the candidate's workspace`,
          expected: "a script that is editable, or lies beside the editable files",
          found: `${script}, which is a file of the pack alone`,
          todo: "move it into the baseline folder and list it under surface.editable, or give the stage trust: evaluator",
        });
    }
  }
  for (const [name, command] of Object.entries(form.playbook ?? {})) {
    for (const script of scriptsOf(command)) if (!layout.files.has(script)) missing(checks, script, ["playbook", name]);
  }
}

function checkStages(checks: Checks): void {
  const { stages } = checks.form;
  const names = stages.map((stage) => stage.name);
  for (const [index, stage] of stages.entries()) {
    const trusted = stage.trust !== "candidate";
    if (names.indexOf(stage.name) !== index)
      checks.at(["stages", index, "name"], {
        what: `two stages are called \`${stage.name}\``,
        expected: "a name of its own for every stage",
        found: stage.name,
        todo: "rename one of the two",
      });
    if (trusted && stage.outputs !== undefined && stage.outputs.length > 0)
      checks.at(["stages", index, "outputs"], {
        what: "an evaluator declares outputs",
        expected: "outputs of candidate stages alone; an evaluator writes $TRIALIST_MEASUREMENT",
        found: stage.outputs.join(", "),
        todo: "remove `outputs` here",
      });
    if (trusted && (stage.repeats ?? 1) > 1)
      checks.at(["stages", index, "repeats"], {
        what: "an evaluator is repeated",
        expected: "`repeats` on candidate stages alone",
        found: String(stage.repeats),
        todo: "remove `repeats` here",
      });
    if (!trusted && stage.purpose !== undefined)
      checks.at(["stages", index, "purpose"], {
        what: "a candidate's stage has a purpose",
        expected: "`purpose` on evaluators alone: a candidate measures nothing itself",
        found: stage.purpose,
        todo: "remove `purpose`, and say under `metrics` where each value comes from",
      });
    if (stage.trust === "held-out" ? (stage.purpose ?? "held-out") !== "held-out" : stage.purpose === "held-out")
      checks.at(["stages", index, "purpose"], {
        what: "trust and purpose do not go together",
        expected: "purpose held-out exactly where trust is held-out",
        found: `trust ${stage.trust}, purpose ${stage.purpose}`,
        todo: "change one of the two",
      });
  }
  const evaluated = stages.some((stage) => stage.trust !== "candidate");
  if (!stages.some((stage) => stage.trust === "candidate"))
    checks.at(["stages"], {
      what: "no stage runs the candidate",
      expected: "at least one stage with trust: candidate",
      found: names.join(", "),
      todo: "add { name: train, trust: candidate, run: …, outputs: […] }",
    });
  else if (evaluated && !stages.some((stage) => (stage.outputs ?? []).length > 0))
    checks.at(["stages"], {
      what: "the evaluator has nothing to read",
      expected: "a candidate stage that declares `outputs`",
      found: "no outputs",
      todo: "add `outputs: [FILE]` to the stage that writes it",
    });
}

function checkMetrics(checks: Checks): void {
  const { metrics, stages } = checks.form;
  const names = metrics.map((metric) => metric.name);
  const candidates = stages.filter((stage) => stage.trust === "candidate").map((stage) => stage.name);
  const measured = stages.some((stage) => stage.trust === "evaluator" && (stage.purpose ?? "in-loop") === "in-loop");
  for (const [index, metric] of metrics.entries()) {
    const where = ["metrics", index];
    if (names.indexOf(metric.name) !== index)
      checks.at(where, {
        what: `two metrics are called \`${metric.name}\``,
        expected: "a name of its own for every metric",
        found: metric.name,
        todo: "rename or remove one of the two",
      });
    const { from } = metric;
    if (from === undefined || from === "measurement") {
      if (!measured)
        checks.at(where, {
          what: `nothing measures \`${metric.name}\``,
          expected:
            "a stage with trust: evaluator and purpose: in-loop, or `from: { wall: STAGE }`, `from: { stdout: REGEX }` or `from: { json: FILE }`",
          found: "no such stage",
          todo: "add the stage, or say where the value comes from",
        });
      continue;
    }
    const stage = "wall" in from ? from.wall : from.stage;
    const key = "wall" in from ? "wall" : "stage";
    if (stage !== undefined && !candidates.includes(stage))
      checks.at([...where, "from", key], {
        what: `\`${metric.name}\` comes from \`${stage}\`, which is no candidate stage`,
        expected: `one of ${candidates.join(", ")}`,
        found: stage,
        todo: didYouMean(stage, candidates, "name a stage with trust: candidate"),
      });
    if ("json" in from) checkJsonOutput(checks, metric.name, from, [...where, "from", "json"]);
  }
}

/** A JSON file that a metric comes from is an output of its stage: nothing else of a workspace is kept. */
function checkJsonOutput(
  checks: Checks,
  metric: string,
  from: { readonly json: string; readonly stage?: string | undefined },
  where: DocumentPath,
): void {
  const writers = checks.form.stages.filter(
    ({ name, trust }) => trust === "candidate" && (from.stage === undefined || from.stage === name),
  );
  const outputs = writers.flatMap((stage) => stage.outputs ?? []);
  if (writers.length === 0 || pathMatcher(outputs)(normalizePath(from.json))) return;
  checks.at(where, {
    what: `\`${metric}\` comes from ${from.json}, which no candidate stage${from.stage === undefined ? "" : ` called ${from.stage}`} declares`,
    expected: "a file that the stage names under `outputs`",
    found: outputs.join(", ") || "no outputs",
    todo: `add \`outputs: [${from.json}]\` to the stage, which writes it below $TRIALIST_OUTPUT`,
  });
}

function checkGates(checks: Checks): void {
  const { gates = [], metrics, stages } = checks.form;
  const names = metrics.map((metric) => metric.name);
  const outputs = stages.flatMap((stage) => stage.outputs ?? []);
  for (const [index, gate] of gates.entries()) {
    const where = ["gates", index];
    if (gate.kind === "metric" && !names.includes(gate.metric))
      checks.at([...where, "metric"], {
        what: `the gate's metric \`${gate.metric}\` does not exist`,
        expected: `one of ${names.join(", ")}`,
        found: gate.metric,
        todo: didYouMean(gate.metric, names, "add it under `metrics`"),
      });
    if (gate.kind === "metric" && gate.atLeast !== null && gate.atMost !== null && gate.atLeast > gate.atMost)
      checks.at(where, {
        what: "no value can pass this gate",
        expected: "at_least not above at_most",
        found: `at_least ${gate.atLeast}, at_most ${gate.atMost}`,
        todo: "correct one of the two",
      });
    if (
      gate.kind === "artifact" &&
      !outputs.some((output) => normalizeGlob(output) === normalizeGlob(gate.artifact) || pathMatcher([output])(gate.artifact))
    )
      checks.at([...where, "artifact"], {
        what: `no stage declares the output \`${gate.artifact}\``,
        expected: outputs.length === 0 ? "a declared output" : `one of ${outputs.join(", ")}`,
        found: gate.artifact,
        todo: didYouMean(gate.artifact, outputs, "add it to the stage's `outputs`"),
      });
  }
}

function checkPromotion(checks: Checks): void {
  const { promotion } = checks.form;
  const rule = promotion?.rule ?? "confirmed";
  if (promotion?.minimum_gain === undefined || rule === "threshold") return;
  checks.at(["promotion", "minimum_gain"], {
    what: "`minimum_gain` has no meaning here",
    expected: "`minimum_gain` with `rule: threshold` alone",
    found: `rule: ${rule}`,
    todo: "write `rule: threshold`, or remove `minimum_gain`",
  });
}

async function checkLocks(checks: Checks): Promise<void> {
  const { form, layout } = checks;
  for (const lock of [form.runtime?.python?.lock, form.data?.prepare_runtime]) {
    const file = lock === undefined ? undefined : layout.files.get(normalizePath(lock));
    if (file === undefined) continue;
    const faults = lockFaults(await readFile(join(layout.folder, file.source), "utf8"));
    for (const { line, ...words } of faults.slice(0, 5)) checks.inFile(file.path, words, line);
  }
}

async function checkFolders(checks: Checks): Promise<void> {
  const { form, layout } = checks;
  for (const name of ["public", "inloop"] as const) {
    const path = form.data?.[name];
    if (path === undefined || form.data?.prepare !== undefined) continue;
    const files = await listFolder(join(layout.folder, path), new Set()).catch(() => []);
    if (files.length === 0)
      checks.at(["data", name], {
        what: `there is no data in ${path}`,
        expected: "a folder with at least one file, or `prepare` that makes it",
        found: "nothing there",
        todo: "correct the path, or add `prepare: prepare.py`",
      });
    for (const file of files.filter((each) => each.kind !== "file"))
      checks.inFile(`${path}/${file.path}`, {
        what: `${file.path} in the data is no regular file`,
        expected: "regular files alone",
        found: file.kind === "link" ? "a symbolic link" : "a socket, a FIFO or a device",
        todo: "copy the file in its place, or bind its folder with `mounts`",
      });
  }
  for (const [index, mount] of (form.mounts ?? []).entries()) {
    if (await isFolder(resolve(layout.folder, mount.source))) continue;
    checks.at(["mounts", index, "source"], {
      what: `there is no folder ${mount.source}`,
      expected: "an existing folder on this machine",
      found: "nothing there, or no folder",
      todo: "correct the path",
    });
  }
  const prefix = form.runtime?.use;
  if (prefix !== undefined && !(await isFolder(isAbsolute(prefix) ? prefix : join(layout.folder, prefix))))
    checks.at(["runtime", "use"], {
      what: `there is no folder ${prefix}`,
      expected: "an existing prefix with a bin folder",
      found: "nothing there",
      todo: "correct the path",
    });
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
}
