import { describe, expect, it } from "vitest";
import { testConfiguration } from "../../../tests/support/configuration.js";
import { type BudgetLimits, nothing } from "../protocol/budget.js";
import { hasRoomForOneMore, oneMoreTrial, uncovered } from "./one-more-trial.js";

const noCaps: BudgetLimits = { trials: null, costUsd: null, tokens: null, computeMs: null, wallMs: null };
const pass = oneMoreTrial(testConfiguration()).pass.computeMs;

describe("what one more trial needs", () => {
  const asking = (budget: Partial<BudgetLimits>, computeMs = 0) =>
    testConfiguration({
      budget: { ...noCaps, ...budget },
      callReservations: {
        draft: { costUsd: 1, tokens: 50, computeMs },
        debug: { costUsd: 0.5, tokens: 200, computeMs },
        "*": { costUsd: 2, tokens: 100, computeMs },
      },
    });

  it("is the cheapest question by each measure, then a pass of all stages", () => {
    expect(oneMoreTrial(asking({}, 7))).toEqual({
      question: { trials: 1, costUsd: 0.5, tokens: 50, computeMs: 7 },
      pass: { ...nothing, computeMs: pass },
    });
    expect(oneMoreTrial({ ...asking({}, 7), organization: { name: "list", configuration: {} } }).question).toEqual(nothing);
  });

  it("is covered to the last, and not by less, whichever cap it is", () => {
    expect(uncovered(asking({}))).toBeNull();
    expect(uncovered(asking({ trials: 1, costUsd: 0.5, tokens: 50, computeMs: pass }))).toBeNull();
    expect(uncovered(asking({ costUsd: 0.4 }))).toEqual({ of: "question", dimension: "costUsd", least: 0.5 });
    expect(uncovered(asking({ tokens: 49 }))).toEqual({ of: "question", dimension: "tokens", least: 50 });
    expect(uncovered(asking({ computeMs: pass - 1 }))).toEqual({ of: "pass", dimension: "computeMs", least: pass });
    expect(uncovered(asking({ computeMs: pass }, pass + 1))).toEqual({ of: "question", dimension: "computeMs", least: pass + 1 });
  });

  it("counts beside what is spent when a search goes on", () => {
    const room = (spent: Partial<typeof nothing>, of: keyof typeof nothing): boolean =>
      hasRoomForOneMore({ ...nothing, ...spent }, asking({ trials: 2, costUsd: 1, tokens: 100, computeMs: 2 * pass }), of);
    expect([room({ trials: 1 }, "trials"), room({ trials: 2 }, "trials")]).toEqual([true, false]);
    expect([room({ costUsd: 0.5 }, "costUsd"), room({ costUsd: 0.6 }, "costUsd")]).toEqual([true, false]);
    expect([room({ tokens: 50 }, "tokens"), room({ tokens: 51 }, "tokens")]).toEqual([true, false]);
    expect([room({ computeMs: pass }, "computeMs"), room({ computeMs: pass + 1 }, "computeMs")]).toEqual([true, false]);
  });
});
