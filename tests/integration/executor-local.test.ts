import { createLocalExecutor } from "../../src/adapters/executors/local.js";
import { findCgroups } from "../../src/adapters/sandbox/cgroup.js";
import { executorContract } from "./executor-contract.js";

const counted = findCgroups().processes;

executorContract("local executor in bubblewrap", {
  sandbox: "bubblewrap",
  refusesProcesses: true,
  open: (root) => createLocalExecutor({ root }),
});

executorContract("local executor in bubblewrap, without cgroups", {
  sandbox: "bubblewrap",
  refusesProcesses: true,
  open: (root) => createLocalExecutor({ root, cgroups: false }),
});

executorContract("local executor without a sandbox", {
  sandbox: "none",
  refusesProcesses: counted,
  open: (root) => createLocalExecutor({ root }),
});

executorContract("local executor without a sandbox and without cgroups", {
  sandbox: "none",
  refusesProcesses: false,
  open: (root) => createLocalExecutor({ root, cgroups: false }),
});
