import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Estimate } from "../../src/app/estimate.js";
import { commandLine } from "../support/drive.js";
import { Lab, numberPack } from "../support/lab.js";

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
  lab.write(numberPack({ seed: 1, words: [] }));
});
afterEach(() => lab.remove());

async function estimated(...words: string[]): Promise<Estimate> {
  const { code, stdout, stderr } = await commandLine(lab, "estimate", lab.pack, "--json", ...words).ended;
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as Estimate;
}

describe("an estimate", () => {
  it("says by role what a question may cost at its price, and what the run may", async () => {
    const { roles, total, rounds } = await estimated("--researcher", "openai:gpt-5-mini", "--max-trials", "10", "--max-cost", "2");
    expect(roles.map(({ role, researcher }) => [role, researcher])).toEqual(
      ["draft", "debug", "improve"].map((role) => [role, "model:openai:gpt-5-mini"]),
    );
    for (const { worst, likely, promptBytes } of roles) {
      // $0.25 a million tokens in and $2 out, 8,192 tokens of output at most.
      expect(worst.costUsd).toBeCloseTo(((worst.tokens - 8192) * 0.25 + 8192 * 2) / 1e6, 9);
      expect(likely.tokens).toBe(Math.ceil(promptBytes / 3.5) + 1500);
      expect(likely.costUsd).toBeLessThan(worst.costUsd);
    }
    expect(total?.worst.costUsd).toBeCloseTo(10 * rounds * Math.max(...roles.map(({ worst }) => worst.costUsd)), 9);
    expect(total?.likely.tokens).toBeGreaterThan(10 * 1500);
  });

  it("takes roles, prices and fallbacks from the project's configuration", async () => {
    const local = {
      provider: "openai-compatible",
      model: "m",
      base_url: "http://127.0.0.1:9/v1",
      price: { input: 1, output: 2 },
      fallback: "dear",
    };
    const dear = { provider: "anthropic", model: "x", price: { input: 10, output: 20 }, max_output_tokens: 1000 };
    writeFileSync(
      join(lab.project, "trialist.config.yaml"),
      JSON.stringify({ models: { local, dear }, researchers: { "*": "local", debug: "dear" } }),
    );
    const { roles } = await estimated();
    expect(roles.map(({ role, researcher }) => `${role} ${researcher}`)).toEqual([
      "draft model:local",
      "debug model:dear",
      "improve model:local",
    ]);
    const [draft, debug] = roles;
    // The fallback may be asked after the first model was.
    expect(draft?.worst.tokens).toBe((debug?.worst.tokens ?? 0) * 2 + 7192);
  });

  it.each([
    [["--researcher", "openai:gpt-9"], /expected a price of gpt-9/],
    [["--researcher", "openai"], /--model MODEL/],
    [["--researcher", "openai-compatible:m", "--allow-unknown-price"], /--base-url/],
    [["--researcher", "openai-compatible:m", "--base-url", "http://me:pw@127.0.0.1/v1", "--allow-unknown-price"], /without user, password/],
    [["--researcher", "nobody"], /expected a researcher/],
    [["--role", "debug"], /ROLE=RESEARCHER/],
    [["--role", "nothing=reference", "--researcher", "openai:gpt-5"], /expected one of the roles/],
    [["--max-cost", "-1"], /--max-cost expects a number above 0/],
  ])("refuses %j", async (words, said) => {
    const { code, stderr } = await commandLine(lab, "estimate", lab.pack, ...words).ended;
    expect(code).toBe(2);
    expect(stderr).toMatch(said);
  });

  it.each([
    ["models: { a: { provider: nobody, model: m } }", /expected a provider/],
    ["models: { a: { provider: openai, model: m, fallback: b } }", /fallback that is one of the models/],
    ["models:\n  a: { provider: openai, model: m, fallback: a }", /fallbacks that come to an end/],
    ["models:\n  a:\n    provider: openai\n    model: m\n    api_key: sk-1", /trialist\.config\.yaml:3.*api_key/],
    ["models: [", /trialist\.config\.yaml:1/],
  ])("refuses the configuration %j", async (text, said) => {
    writeFileSync(join(lab.project, "trialist.config.yaml"), text);
    const { code, stderr } = await commandLine(lab, "estimate", lab.pack, "--researcher", "openai:gpt-5").ended;
    expect(code).toBe(2);
    expect(stderr).toMatch(said);
  });
});
