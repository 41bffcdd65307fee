// Looks for a project's garbage in a process of its own and says what it took.

import { readFileSync } from "node:fs";
import { openHost } from "../dist/app/environments.js";
import { collectGarbage } from "../dist/app/gc.js";
import { Project } from "../dist/app/project.js";

const [folder] = process.argv.slice(2);
const begun = performance.now();
const report = await collectGarbage(new Project(folder), await openHost(), { remove: true, cacheOlderThanMs: null });
const items = report.kinds.find((each) => each.kind === "blobs").items;
const elapsedMs = performance.now() - begun;
// Not `resourceUsage().maxRSS`, in which a process starts with what its parent held.
const [, peakKiB] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
process.stdout.write(JSON.stringify({ ms: elapsedMs, peakMiB: Number(peakKiB) / 1024, items }));
