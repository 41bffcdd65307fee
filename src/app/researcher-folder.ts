import { chmod, cp, rm } from "node:fs/promises";
import { dirname, relative, sep } from "node:path";
import type { PreparedEnvironment } from "../core/ports/prepared-environment.js";

/** The folder of command researchers, made when the first of them is asked: a large pack takes its time, and calibration needs none. */
export function researcherFolder(
  prepared: PreparedEnvironment,
  folder: string,
): { readonly folder: string; readonly bringFolder: () => Promise<void> } {
  let made: Promise<void> | null = null;
  const bringFolder = (): Promise<void> => {
    made ??= makeResearcherFolder(prepared, folder).catch((error: unknown) => {
      // The next one who is asked tries again.
      made = null;
      throw error;
    });
    return made;
  };
  return { folder, bringFolder };
}

/**
 * A copy of the frozen pack for command researchers, without what measures a candidate: files that trusted stages name,
 * and the preparation with its raw inputs, which may hold answers.
 */
async function makeResearcherFolder(prepared: PreparedEnvironment, target: string): Promise<void> {
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
