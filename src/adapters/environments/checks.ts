import { join } from "node:path";
import type { ContractForm } from "./contract.js";
import type { PackLayout } from "./pack-layout.js";
import type { Problem } from "./problems.js";
import type { DocumentPath, YamlSource } from "./yaml-source.js";

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
