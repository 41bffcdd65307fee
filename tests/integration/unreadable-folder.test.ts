import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { listFolder } from "../../src/adapters/environments/folder-files.js";
import { RefusedError } from "../../src/core/protocol/errors.js";

it("a folder that this user cannot read is refused by its name", async () => {
  const folder = mkdtempSync(join(tmpdir(), "trialist-unreadable-"));
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, "closed"), { mode: 0o000 });
  const self = process.geteuid?.() ?? 0;
  // Nothing is closed to root.
  if (self === 0) process.seteuid?.(60_000);
  try {
    const listed = listFolder(folder);
    await expect(listed).rejects.toThrow(RefusedError);
    await expect(listed).rejects.toThrow(/closed: expected a folder that can be read; found EACCES/);
  } finally {
    process.seteuid?.(self);
    rmSync(folder, { recursive: true });
  }
});
