import { closeSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { dirname, join } from "node:path";

/** Blobs of up to this many bytes live in the ledger; larger ones are files. */
export const maxInlineBlobBytes = 64 * 1024;

export function ledgerPath(runFolder: string): string {
  return join(runFolder, "ledger.sqlite");
}

/**
 * Never open this file with `fs`: closing any descriptor of a file frees every lock that the process holds on it (POSIX),
 * and the run would be without an owner. The same holds for `ledger.sqlite` and its companions.
 */
export function lockPath(runFolder: string): string {
  return join(runFolder, "lock");
}

export function ownerInfoPath(runFolder: string): string {
  return join(runFolder, "owner.json");
}

export function socketPath(runFolder: string): string {
  return join(runFolder, "owner.sock");
}

export function sealedPath(runFolder: string): string {
  return join(runFolder, "sealed.sqlite");
}

/** Makes a folder and its parents, each of them durable. */
export function makeDurableFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) syncFolder(dirname(made));
}

/** Makes the entries of a folder durable: without it a power loss may forget a rename. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
