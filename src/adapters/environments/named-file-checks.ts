import { readFile, stat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import type { Checks } from "./checks.js";
import { listFolder } from "./folder-files.js";
import { normalizePath, pathMatcher } from "./globs.js";
import { lockFaults } from "./lock-file.js";
import { scriptsOf } from "./pack-commands.js";
import { candidateFiles, isDescriptionFile } from "./pack-layout.js";
import { closest } from "./suggestions.js";
import type { DocumentPath } from "./yaml-source.js";

const textMaxBytes = 2 ** 20;

export function checkNamedFiles(checks: Checks): void {
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

export function checkScripts(checks: Checks): void {
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

export async function checkLocks(checks: Checks): Promise<void> {
  const { form, layout } = checks;
  for (const lock of [form.runtime?.python?.lock, form.data?.prepare_runtime]) {
    const file = lock === undefined ? undefined : layout.files.get(normalizePath(lock));
    if (file === undefined) continue;
    const faults = lockFaults(await readFile(join(layout.folder, file.source), "utf8"));
    for (const { line, ...words } of faults.slice(0, 5)) checks.inFile(file.path, words, line);
  }
}

export async function checkFolders(checks: Checks): Promise<void> {
  await checkDataFolders(checks);
  await checkMounts(checks);
  await checkPrefix(checks);
}

async function checkDataFolders(checks: Checks): Promise<void> {
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
}

async function checkMounts(checks: Checks): Promise<void> {
  const { form, layout } = checks;
  for (const [index, mount] of (form.mounts ?? []).entries()) {
    if (await isFolder(resolve(layout.folder, mount.source))) continue;
    checks.at(["mounts", index, "source"], {
      what: `there is no folder ${mount.source}`,
      expected: "an existing folder on this machine",
      found: "nothing there, or no folder",
      todo: "correct the path",
    });
  }
}

async function checkPrefix(checks: Checks): Promise<void> {
  const { form, layout } = checks;
  const prefix = form.runtime?.use;
  if (prefix !== undefined && !(await isFolder(isAbsolute(prefix) ? prefix : join(layout.folder, prefix))))
    checks.at(["runtime", "use"], {
      what: `there is no folder ${prefix}`,
      expected: "an existing prefix with a bin folder",
      found: "nothing there",
      todo: "correct the path",
    });
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

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
}
