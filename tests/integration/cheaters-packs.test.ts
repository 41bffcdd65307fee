import { afterEach, describe, expect, it } from "vitest";
import { boxed, type Opening, program, SharingLab, studied, studiedBy, text } from "../support/cheaters.js";
import { proposes } from "../support/lab.js";

/**
 * The tricks that depend on what an environment of the box is made of. A failure of "finds no answers" may mean that this
 * machine itself has a package with the answers below /usr, which every stage sees: then no run here is worth anything.
 */
let labs: SharingLab[] = [];
afterEach(() => {
  for (const lab of labs) lab.remove();
  labs = [];
});

function lab(): SharingLab {
  const made = new SharingLab();
  labs.push(made);
  return made;
}

/** Ends badly where a package is to be seen that was installed for the system's own Python. */
const seesNoPackages = `import glob, os
assert not [p for f in glob.glob("/usr/lib/python3*/*-packages") + glob.glob("/usr/local/lib/python3*/*-packages") for p in os.listdir(f)]
`;

type Contract = NonNullable<Opening["contract"]>;
/** Fewer repetitions, so that a test ends within a minute. */
const brief = (confirmations: number): Contract => [
  ["calibrate: 5", "calibrate: 2"],
  [`confirmations: ${confirmations}`, "confirmations: 2"],
];
/** The packages of the preparation, which carry the answers, where candidates run. */
const answersInstalled: Contract = [["lock: requirements.lock }", "lock: prepare.lock }"]];

describe("flchain", () => {
  const pack = boxed("flchain");
  const baseline = pack["baseline/solution.py"] ?? "";
  const cheats = ["flchain_installed", "plants_sitecustomize", "shadows_modules"];

  it("finds no answers, and grades what was handed in: no cheat beats the baseline", async () => {
    const candidates = [
      `${program("flchain_installed")}${baseline}`,
      ...cheats.slice(1).map((name) => `${program()}${baseline}${planting(name)}`),
    ];
    const run = await studied(pack, [...candidates, `${seesNoPackages}${baseline}`], { contract: brief(2) }, lab());
    expect(run.end(`t${candidates.length + 1}`).status).toBe("discard");
    expect(cheats.map((cheat, index) => `${cheat}: ${run.end(`t${index + 1}`).status}`)).toEqual(
      cheats.map((cheat) => `${cheat}: discard`),
    );
    const honest = run.measured("t0")?.values;
    for (const index of cheats.keys()) expect(run.measured(`t${index + 1}`)?.values).toEqual(honest);
    expect(run.leader).toBe("t0");
  });

  it("is solved by whoever has the package that carries it", async () => {
    const plain = boxed("flchain", { "baseline/solution.py": program("flchain_prior") });
    const references: Contract = [["references: { lightgbm_defaults: references/lightgbm_defaults/ }\n", ""]];
    const contract = [...brief(2), ...answersInstalled, ...references];
    const run = await studied(plain, [program("flchain_installed", "flchain_prior")], { contract }, lab());
    expect([run.end("t1").status, run.leader]).toEqual(["keep", "t1"]);
    expect(run.measured("t1")?.values["accuracy"]).toBeGreaterThan(0.99);
  });

  it("keeps nothing of the null researcher, who changes nothing", async () => {
    const run = await studiedBy(pack, [], 2, { contract: brief(2), researcher: "null" }, lab());
    expect([run.end("t1").status, run.end("t2").status, run.leader]).toEqual(["discard", "discard", "t0"]);
    expect(run.measured("t1")?.values).toEqual(run.measured("t0")?.values);
  });
});

/** A planting cheat without its own answer, which is another environment's. It comes last: a planted module meets its planter too. */
function planting(name: string): string {
  return text(`${name}.py`).replace("\nanswer({})\n", "\n");
}

describe("digits-speed", () => {
  const pack = boxed("digits-speed");
  const baseline = pack["baseline/solution.py"] ?? "";

  it("finds no answers, and counts no work after the end: no cheat beats the baseline", async () => {
    const candidates = [`${program("digits_installed")}${baseline}`, program("digits_after_end")];
    const run = await studied(pack, candidates, { contract: brief(5) }, lab());
    expect([run.end("t1").status, run.end("t2").status, run.leader]).toEqual(["discard", "no_result", "t0"]);
    expect(run.measured("t1")?.values["accuracy"]).toBe(run.measured("t0")?.values["accuracy"]);
  });

  it("is solved by whoever has the package that carries it", async () => {
    const contract = [...brief(5), ...answersInstalled];
    const run = await studied(pack, [`${program("digits_installed")}${baseline}`], { contract }, lab());
    expect(run.measured("t1")?.values["accuracy"]).toBe(1);
    // What decides is a clock: whether the answers were also there sooner than the baseline's is the machine's to say.
    expect(["keep", "discard"]).toContain(run.end("t1").status);
  });

  /**
   * What nothing guards against. The test images are the same in every process, a gate asks for 0.955 and not for more, and
   * 800 digits are 800 bytes: a program may hold the answers that an earlier one has worked out. The description forbids it,
   * and whoever reads the winner's diff sees it; no measurement does, the held-out one included.
   */
  it("is open to a program that holds the predictions of an earlier one", async () => {
    const words = [proposes({ "solution.py": program("digits_tells") }), text("digits_told.sh")];
    const opening = { contract: brief(5), organization: { drafts: 1, debugProbability: 1 } };
    const run = await studiedBy(pack, words, 2, opening, lab());
    expect([run.end("t1").status, run.end("t2").status, run.leader]).toEqual(["crashed", "keep", "t2"]);
    expect((await run.heldout("t2"))?.["accuracy"]).toBeGreaterThan(0.955);
  });
});
