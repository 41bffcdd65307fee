import { lstatSync, readdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { type Digest, digestOfValue } from "../../core/protocol/canonical.js";

/**
 * What an upgrade of an existing prefix changes: the interpreter, its configuration, and the packages' records. No
 * folder's own time counts, since bytecode that somebody's program leaves there changes it. Cheap: no package is entered.
 */
export function fingerprintPrefix(prefix: string): Digest {
  const records: unknown[] = [];
  for (const path of ["pyvenv.cfg", "bin/python", "bin/node"]) records.push([path, ...ofFile(join(prefix, path))]);
  for (const folder of packageFolders(prefix)) {
    for (const name of namesIn(join(prefix, folder))) {
      if (name !== "__pycache__") records.push([`${folder}/${name}`, ...ofPackage(join(prefix, folder, name))]);
    }
  }
  return digestOfValue(records);
}

function packageFolders(prefix: string): string[] {
  const pythons = ["lib", "lib64"].flatMap((lib) =>
    namesIn(join(prefix, lib)).flatMap((name) => [`${lib}/${name}/site-packages`, `${lib}/${name}/dist-packages`]),
  );
  return [...pythons, "lib/node_modules", "conda-meta"];
}

/** A file by itself; a folder by the file that its installer writes last. */
function ofPackage(path: string): unknown[] {
  const facts = factsOf(path);
  if (facts === null || !facts.isDirectory()) return ofFile(path);
  return ["RECORD", "METADATA", "PKG-INFO", "package.json", "__init__.py"].flatMap((name) => ofFile(join(path, name)));
}

function ofFile(path: string): unknown[] {
  try {
    const target = realpathSync(path);
    const { size, mtimeMs, ino } = statSync(target);
    return [target, size, Math.trunc(mtimeMs), ino];
  } catch {
    return [];
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

function factsOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}
