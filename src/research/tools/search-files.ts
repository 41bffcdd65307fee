import { z } from "zod";
import { tool } from "./tool.js";

const mostHits = 100;

export const searchFiles = tool({
  name: "search_files",
  description: "Lines of your working copy that hold a text, case-sensitive.",
  roles: ["researcher"],
  input: z.object({ text: z.string().min(1).max(200) }),
  run({ workbench }, { text }) {
    const hits: { path: string; line: number; text: string }[] = [];
    for (const { path } of workbench.files()) {
      const lines = (workbench.text(path) ?? "").split("\n");
      for (const [index, line] of lines.entries()) {
        if (line.includes(text)) hits.push({ path, line: index + 1, text: line.slice(0, 300) });
      }
    }
    return { hits: hits.slice(0, mostHits), more: Math.max(0, hits.length - mostHits) };
  },
});
