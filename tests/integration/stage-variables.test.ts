import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadEnvironment } from "../../src/adapters/environments/load.js";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { commandLineWith } from "../support/drive.js";
import { Lab, proposes, scriptedResearcher } from "../support/lab.js";

/** What of the host's environment a candidate gets: the variables that the contract names, and no network. */
const seed = 3;
const lab = new Lab();
afterAll(() => lab.remove());

const contract = `schema: trialist/environment@1
name: variables
surface: { editable: ["main.sh"] }
stages: [{ name: train, run: sh main.sh, env: { pass: [MOOD, ABSENT] } }]
metrics: [{ name: score, direction: maximize, from: { stdout: "score: (\\\\d+)" } }]
noise: { calibrate: 2 }
promotion: { rule: any }
`;
const host = {
  MOOD: "well $(whoami)\u00e9",
  UNNAMED: "canary-unnamed",
  SERVICE_API_KEY: "canary-secret",
  LD_LIBRARY_PATH: "/canary-library",
};
/** All that a program can find of variables, of its own and of the processes that it sees. */
const spy = `env | sed 's/^/var /'
cat /proc/1/environ /proc/self/environ | tr '\\0' '\\n' | sed 's/^/seen /'
tail -n +3 /proc/net/dev | sed 's/^ */interface /'
exit 7
`;
let shown = "";

beforeAll(async () => {
  lab.write({
    "environment.yaml": contract,
    "baseline/main.sh": "echo 'score: 1'\n",
    ...scriptedResearcher(seed, [proposes({ "main.sh": spy })]),
  });
  const flags = ["--researcher", "command:sh answer.sh", "--seed", String(seed), "--max-trials", "1", "--name", "run"];
  const { code, stderr } = await commandLineWith(lab, host, "run", lab.pack, ...flags).ended;
  expect([code, stderr]).toEqual([0, expect.stringMatching(/t1/)]);
  const inspected = inspectRun(new Project(lab.project), "run");
  try {
    shown = Buffer.from(inspected.ledger.blob(inspected.state.trials["t1"]?.failure?.stdout.blob ?? "")).toString("utf8");
  } finally {
    inspected.close();
  }
}, 60_000);

describe("a candidate's stage", () => {
  it("gets the variables of the host that the contract names, to the byte", () => {
    expect(shown).toContain(`var MOOD=${host.MOOD}\n`);
    expect(shown).not.toContain("ABSENT=");
  });

  it("gets no other, nor sees one in the processes around it", () => {
    expect(shown).toMatch(/seen TRIALIST_SEED=/);
    expect(shown).not.toMatch(/canary|UNNAMED|SERVICE_API_KEY|TRIALIST_CACHE/);
  });

  it("has no network but an empty loopback", () => {
    expect([...shown.matchAll(/interface (\w+):\s+(\d+)/g)].map(([, name, bytes]) => [name, bytes])).toEqual([["lo", "0"]]);
  });
});

describe("the contract", () => {
  const problemsOf = (text: string): Promise<string> =>
    loadEnvironment(lab.pack, text).then(
      () => "",
      (error: Error) => error.message,
    );

  it.each([
    ...["api_key", "HF_TOKEN", "CLIENT_SECRET", "DB_PASSWORD", "SSH_AUTH_SOCK", "AWS_CREDENTIALS", "GH_PAT", "SENTRY_DSN"],
    ...["SESSION_ID", "COOKIE_JAR", "BEARER", "PRIVATE_URL", "GPG_PASSPHRASE", "WEBHOOK_SIGNATURE"],
  ])("refuses to pass %s", async (name) => {
    expect(await problemsOf(contract.replace("ABSENT", name))).toMatch(/name does not look like a secret's/);
  });

  it.each(["MOOD=1", "A B", "*", "1ST"])("refuses %s, which names no variable", async (name) => {
    expect(await problemsOf(contract.replace("ABSENT", JSON.stringify(name)))).toMatch(/the name of an environment variable/);
  });

  it.each(["network: true", "env: { all: true }", "env: { set: { A: b } }"])("has no %s", async (key) => {
    expect(await problemsOf(contract.replace("env: { pass: [MOOD, ABSENT] }", key))).toMatch(/network|all|set/);
  });
});
