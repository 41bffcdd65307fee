import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Project } from "./project.js";
import { type SessionRole, sessionRoles } from "./tool-sessions.js";

const tokenFile = z.strictObject(
  Object.fromEntries(sessionRoles.map((role) => [role, z.string().min(32)])) as Record<SessionRole, z.ZodString>,
);

/** The bearer tokens of a run's MCP server, one a role, and the file that holds them, readable by its owner alone. */
export async function mcpTokens(
  project: Project,
  run: string,
): Promise<{ readonly file: string; readonly tokens: Readonly<Record<SessionRole, string>> }> {
  const file = join(project.existingRun(run), "mcp-tokens.json");
  const known = await readFile(file, "utf8").catch(() => null);
  const parsed = known === null ? null : tokenFile.safeParse(JSON.parse(known));
  if (parsed?.success === true) return { file, tokens: parsed.data };
  const fresh = Object.fromEntries(sessionRoles.map((role) => [role, randomBytes(32).toString("base64url")])) as Record<
    SessionRole,
    string
  >;
  await writeFile(file, `${JSON.stringify(fresh, null, 2)}\n`, { mode: 0o600 });
  return { file, tokens: fresh };
}
