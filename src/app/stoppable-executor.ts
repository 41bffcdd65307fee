import type { Executor } from "../core/ports/executor.js";

/** An executor whose stages end with the signal: for work that nobody resumes. Nothing starts once it was given. */
export function stoppableExecutor(executor: Executor, signal: AbortSignal): Executor {
  const running = new Set<string>();
  signal.addEventListener("abort", () => {
    for (const id of running) void executor.stop(id).catch(() => undefined);
  });
  return {
    start: async (execution) => {
      signal.throwIfAborted();
      running.add(execution.id);
      await executor.start(execution);
      if (signal.aborted) await executor.stop(execution.id);
    },
    find: (id) => executor.find(id),
    wait: async (id) => {
      const found = await executor.wait(id);
      running.delete(id);
      // How it ended is nobody's judgement: it was stopped.
      signal.throwIfAborted();
      return found;
    },
    output: (id) => executor.output(id),
    stop: (id) => executor.stop(id),
    gpusInUse: () => executor.gpusInUse(),
    forget: (prefix) => executor.forget(prefix),
    close: () => executor.close(),
  };
}
