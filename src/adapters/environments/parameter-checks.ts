import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { findParameter } from "../../core/protocol/parameters.js";
import type { ContractForm } from "./contract.js";
import { normalizeGlob, normalizePath, pathMatcher } from "./globs.js";
import type { PackLayout } from "./pack-layout.js";
import type { Problem } from "./problems.js";
import type { DocumentPath } from "./yaml-source.js";

interface Checked {
  readonly form: ContractForm;
  readonly layout: PackLayout;
  at(path: DocumentPath, words: Pick<Problem, "what" | "expected" | "found" | "todo">): void;
}

/** Every declared number stands in an editable file of the baseline, once, between its bounds. */
export async function checkParameters(checks: Checked): Promise<void> {
  const { form, layout } = checks;
  const parameters = form.surface.parameters ?? [];
  const isEditable = pathMatcher(form.surface.editable.map(normalizeGlob));
  for (const [index, parameter] of parameters.entries()) {
    const wrong = (member: string, expected: string, found: string, todo: string): void =>
      checks.at(["surface", "parameters", index, member], {
        what: `the parameter ${parameter.name} cannot be tuned`,
        expected,
        found,
        todo,
      });
    const path = normalizePath(parameter.file);
    if (parameters.findIndex(({ name }) => name === parameter.name) !== index)
      wrong("name", "a name that no other parameter has", parameter.name, "rename one of the two");
    const baseline = normalizePath(form.baseline);
    const file = layout.files.get(baseline === "." ? path : `${baseline}/${path}`);
    if (file === undefined || !isEditable(path)) {
      wrong("file", "an editable file of the baseline", path, "name a file that surface.editable matches, relative to the baseline folder");
      continue;
    }
    const place = findParameter(parameter, await readFile(join(layout.folder, file.source), "utf8"));
    if ("reason" in place)
      wrong(
        "after",
        `a number in ${path}, right after this text, which is there once`,
        place.reason,
        "copy the text before the number exactly, with enough of it to be unique",
      );
    else if (place.value < parameter.low || place.value > parameter.high)
      wrong(
        "low",
        "bounds that hold the baseline's number",
        `${place.text} is not between ${parameter.low} and ${parameter.high}`,
        "widen the bounds",
      );
  }
}
