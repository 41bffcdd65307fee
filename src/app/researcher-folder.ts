import { chmod, cp, rm } from "node:fs/promises";
import { dirname, relative, sep } from "node:path";
import type { PreparedEnvironment } from "../core/ports/prepared-environment.js";

/**
 * A copy of the frozen pack for command researchers, without what measures a candidate: files that trusted stages name,
 * and the preparation with its raw inputs, which may hold answers.
 */
export async function makeResearcherFolder(prepared: PreparedEnvironment, target: string): Promise<string> {
  const hidden = hiddenPaths(prepared);
  await rm(target, { recursive: true, force: true });
  await cp(prepared.packFolder, target, {
    recursive: true,
    filter: (source) => {
      const path = relative(prepared.packFolder, source).split(sep).join("/");
      return !hidden.some((each) => path === each || path.startsWith(`${each}/`));
    },
  });
  await chmod(target, 0o755);
  return target;
}

function hiddenPaths({ environment }: PreparedEnvironment): string[] {
  const words = environment.stages.filter((stage) => stage.trust !== "candidate").flatMap((stage) => stage.run.split(/[\s;&|"'<>()]+/));
  const prepare = environment.data?.prepare ?? null;
  // A preparation that lies in a folder of its own reads its inputs from there.
  const inputs = prepare === null ? [] : [dirname(prepare) === "." ? prepare : dirname(prepare)];
  const named = words
    .map((word) => word.replace(/^\.\//, ""))
    .filter((word) => word !== "" && word !== "." && !word.startsWith("-") && !word.startsWith("/"));
  return [...named, ...inputs, ...(environment.data?.prepareRuntime == null ? [] : [environment.data.prepareRuntime])];
}
