import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RefusedError } from "../core/protocol/errors.js";
import { Project } from "./project.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trialist-project-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the folder of a project's runs", () => {
  it("is made, and again without harm", () => {
    const project = new Project(join(folder, "not yet", "there"));
    project.make();
    project.make();
    expect(project.runNames()).toEqual([]);
  });

  it("is refused with what to do where it cannot be written", () => {
    writeFileSync(join(folder, ".trialist"), "a file");
    expect(() => new Project(folder).make()).toThrow(RefusedError);
    expect(() => new Project(folder).make()).toThrow(/expected a folder that runs can be recorded in; found .*name one with -C/);
  });
});
