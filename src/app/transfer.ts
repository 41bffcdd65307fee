import { type ExportReport, exportLedger } from "../adapters/ledger/export-ledger.js";
import { type ImportReport, importLedger } from "../adapters/ledger/import-ledger.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { Project } from "./project.js";

export function exportRun(project: Project, name: string, file: string, blobs: boolean): Promise<ExportReport> {
  return exportLedger(project.existingRun(name), file, { blobFolder: project.blobFolder, blobs, run: name });
}

export async function importRun(project: Project, file: string, name: string): Promise<ImportReport> {
  const folder = project.runFolder(name);
  if (project.runNames().includes(name))
    throw new RefusedError({
      expected: "a name that no run of this project has",
      found: JSON.stringify(name),
      todo: "Choose another --name.",
    });
  project.make();
  return importLedger(file, folder, { blobFolder: project.blobFolder });
}
