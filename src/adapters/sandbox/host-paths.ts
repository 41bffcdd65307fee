import type { Mount, StageExecution } from "../../core/ports/executor.js";

/** Where a path inside the sandbox lies on the host, by the innermost mount that holds it; itself when none does. */
export function hostPath(mounts: readonly Mount[], inside: string): string {
  let best: Mount | undefined;
  for (const mount of mounts) {
    const holds = inside === mount.target || inside.startsWith(mount.target === "/" ? "/" : `${mount.target}/`);
    if (holds && (best === undefined || mount.target.length > best.target.length)) best = mount;
  }
  return best === undefined ? inside : best.source + inside.slice(best.target.length);
}

/**
 * The same execution for `sandbox: "none"`, where nothing can be mounted and a command sees the host's own paths:
 * mounts, working directory and the paths in environment variables (also in lists such as PATH) are translated. The
 * command is text and stays as it is; fill its placeholders with `hostPath` before.
 */
export function onHostPaths(execution: StageExecution): StageExecution {
  const translate = (value: string): string => hostPath(execution.mounts, value);
  const environment = Object.entries(execution.environment).map(
    ([name, value]) => [name, value.split(":").map(translate).join(":")] as const,
  );
  return {
    ...execution,
    sandbox: "none",
    workingDirectory: translate(execution.workingDirectory),
    environment: Object.fromEntries(environment),
    mounts: execution.mounts.map((mount) => ({ ...mount, target: mount.source })),
  };
}
