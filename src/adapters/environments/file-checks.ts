import { join } from "node:path";
import type { Checks } from "./checks.js";
import { normalizePath, pathFault, pathMatcher } from "./globs.js";
import { candidateFiles, contractFile } from "./pack-layout.js";
import { didYouMean } from "./suggestions.js";
import type { DocumentPath } from "./yaml-source.js";

/** Largest pack, and largest surface: beyond it something is in the folder that does not belong there. */
const packMost = { files: 20_000, bytes: 256 * 2 ** 20, inWords: "20,000 files and 256 MiB" };
/** A repository with all that git does not ignore is larger than a pack that was made as one. */
const repositoryMost = { files: 200_000, bytes: 20 * 2 ** 30, inWords: "200,000 files and 20 GiB" };
const surfaceMaxFiles = 2_000;

export function checkNamesOfFiles(checks: Checks): void {
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

export function checkIntruders(checks: Checks): void {
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

export function checkSize(checks: Checks): void {
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

export function checkEditable(checks: Checks): void {
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

export function checkWritable(checks: Checks): void {
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

export function checkCandidates(checks: Checks): void {
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
