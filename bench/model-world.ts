import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { modelSettings } from "../src/adapters/researchers/model/settings.js";
import { freezeModel, modelResearcherNamed } from "../src/app/model-researchers.js";
import type { Secrets } from "../src/app/secrets.js";
import type { Researcher } from "../src/core/ports/researcher.js";
import type { RunConfiguration } from "../src/core/protocol/run.js";
import { worldConfiguration } from "./scripted-world.js";

/** A language model on this machine that answers at once, and a run that asks it. */

const researcherName = "model:local";

/** A machine without secrets. */
export const noSecrets: Secrets = { redact: (text) => text, variable: () => undefined, learn: () => undefined };

/** A server in a process of its own. */
export class LocalModelServer {
  private constructor(
    private readonly child: ChildProcess,
    readonly baseUrl: string,
  ) {}

  static async start(): Promise<LocalModelServer> {
    const program = fileURLToPath(new URL("./local-model-server.mjs", import.meta.url));
    const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface({ input: child.stdout })) return new LocalModelServer(child, `http://127.0.0.1:${line}/v1`);
    throw new Error("the model's server ended before it could be asked");
  }

  stop(): void {
    this.child.kill();
  }
}

export function modelConfiguration(baseUrl: string, changes: Partial<RunConfiguration> = {}): RunConfiguration {
  const settings = modelSettings.parse({ provider: "openai-compatible", model: "local", baseUrl, retries: 0 });
  return worldConfiguration({
    researchers: { "*": researcherName },
    researcherSettings: { [researcherName]: freezeModel(settings, null, true) },
    ...changes,
  });
}

/** The run's researcher, over HTTP, recorded and billed as in every run. */
export function modelResearchers({ researcherSettings }: RunConfiguration): ReadonlyMap<string, Researcher> {
  return new Map([
    [researcherName, modelResearcherNamed(researcherName, { settings: researcherSettings, models: {}, secrets: noSecrets, offline: null })],
  ]);
}
