import { createLocalExecutor } from "../../src/adapters/executors/local.js";
import type { StageExecution } from "../../src/core/ports/executor.js";

/** A runner that starts one stage, says so, waits for its end and is usually killed before that. */
async function main(): Promise<void> {
  const { root, execution } = JSON.parse(process.argv[2] ?? "") as { root: string; execution: StageExecution };
  const executor = createLocalExecutor({ root });
  await executor.start(execution);
  process.stdout.write("started\n");
  await executor.wait(execution.id);
  await executor.close();
  process.stdout.write("ended\n");
}

await main();
