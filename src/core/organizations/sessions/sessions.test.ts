import { describe, expect, it } from "vitest";
import { testConfiguration } from "../../../../tests/support/configuration.js";
import { candidateOf, SimulatedRun } from "../../../../tests/support/simulated-run.js";
import { due } from "../../harness/due.js";
import { nothing } from "../../protocol/budget.js";

const world = {
  answer: () => "fail" as const,
  measure: (subject: string, seed: number) => ({ value: Number(subject.slice(1)) + (seed % 10) / 1000 }),
};

function searching(sessions: number): SimulatedRun {
  const run = new SimulatedRun(
    testConfiguration({ organization: { name: "sessions", configuration: { sessions } }, researchers: { "*": "model:m" } }),
    world,
  );
  for (let step = 0; step < 200 && run.state.phase !== "searching"; step++) run.work(1);
  return run;
}

const opened = (run: SimulatedRun): string[] =>
  Object.values(run.state.sessions).map(({ id, researcher, base }) => `${id} ${researcher} ${base}`);
const advance = (run: SimulatedRun): void => run.dispatch({ at: run.at, type: "advance" });
const close = (run: SimulatedRun, session: string, interrupted = false): void =>
  run.dispatch({ at: run.at, type: "close_session", session, reason: "as the test has it", interrupted, usage: nothing });

describe("the organization of long sessions", () => {
  it("keeps as many open as it is told, from the best", () => {
    const run = searching(2);
    for (let step = 0; step < 5; step++) advance(run);
    expect(opened(run)).toEqual(["s1 model:m t0", "s2 model:m t0"]);
  });

  it("follows one that was cut off by one from where it stood, and ends when several in a row hand nothing in", () => {
    const run = searching(1);
    advance(run);
    const { reference, manifest } = candidateOf("handed in");
    const plan = { hypothesis: "h", expectedGain: null, respondsTo: [], commitment: {} };
    run.dispatch({
      at: run.at,
      type: "submit",
      by: { session: "s1" },
      base: "t0",
      submission: { ...plan, candidate: reference, manifest, edited: ["a.txt"] },
    });
    close(run, "s1", true);
    advance(run);
    expect(opened(run)).toEqual(["s2 model:m t1"]);
    for (const session of ["s2", "s3", "s4"]) {
      close(run, session);
      advance(run);
    }
    expect(run.state.reason).toBe("3 sessions in a row handed nothing in");
  });

  it("starts from what the operator pinned, in turn, and never from what is held", () => {
    const run = searching(3);
    for (const text of ["one", "two", "three"]) {
      const { reference, manifest } = candidateOf(text);
      const plan = { hypothesis: "h", expectedGain: null, respondsTo: [], commitment: {} };
      const submission = { ...plan, candidate: reference, manifest, edited: ["a.txt"] };
      run.dispatch({ at: run.at, type: "submit", by: { submitter: "a person" }, base: "t0", submission });
    }
    while (run.state.openTrials.length > 0) for (const item of due(run.state, run.at)) if (item.kind !== "advance") run.perform(item);
    expect(run.state.leader?.trial).toBe("t3");
    run.dispatch({ at: run.at, type: "hold", trial: "t3", reason: "r" });
    advance(run);
    for (const trial of ["t1", "t2"]) run.dispatch({ at: run.at, type: "pin", trial, reason: "r" });
    for (let step = 0; step < 2; step++) advance(run);
    expect(opened(run)).toEqual(["s1 model:m t2", "s2 model:m t2", "s3 model:m t1"]);
  });

  it("goes on with each of several that were cut off at once", () => {
    const run = searching(3);
    for (let step = 0; step < 3; step++) advance(run);
    for (const session of ["s1", "s2", "s3"]) close(run, session, true);
    for (let step = 0; step < 3; step++) advance(run);
    const reopened = run.events.flatMap((event) => (event.type === "session.opened" ? [event.data.reopens] : []));
    expect(reopened).toEqual([null, null, null, "s1", "s2", "s3"]);
  });

  it("takes no notice of those that come from outside", () => {
    const run = searching(1);
    for (let client = 0; client < 4; client++) {
      run.dispatch({ at: run.at, type: "open_session", role: "reviewer", researcher: "mcp", base: "t0", reopens: null });
      close(run, `s${client + 1}`, client === 0);
    }
    advance(run);
    expect(opened(run)).toEqual(["s5 model:m t0"]);
    expect(due(run.state, run.at)).toContainEqual({ kind: "session", session: "s5", isStale: false });
  });

  it("closes all sessions when the run ends at once, and lets a turn end when it drains", () => {
    const run = searching(1);
    advance(run);
    run.dispatch({ at: run.at, type: "finish", reason: "enough" });
    expect(opened(run)).toEqual(["s1 model:m t0"]);
    run.dispatch({ at: run.at, type: "exhaust", cap: "wallMs" });
    expect(opened(run)).toEqual([]);
  });
});
