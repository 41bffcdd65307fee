import {
  type FailureKind,
  type ModelRecord,
  type Researcher,
  ResearcherFailedError,
  type RoleAnswer,
} from "../../../core/ports/researcher.js";
import type { Amount } from "../../../core/protocol/budget.js";
import { exchangesOf, trafficOf } from "./traffic.js";

/** Failures that lie with one model, or with its provider: another may answer. */
const elsewhere: ReadonlySet<FailureKind> = new Set([
  "unavailable",
  "quota_exhausted",
  "key_refused",
  "model_unknown",
  "context_overflow",
  "request_refused",
]);

/** Asks `fallback` where `primary` cannot answer, with what the call may then still use. */
export function withFallback(primary: Researcher, fallback: Researcher): Researcher {
  return {
    name: primary.name,
    async settled(question) {
      await primary.settled?.(question);
      await fallback.settled?.(question);
    },
    async answer(request, signal) {
      try {
        return await primary.answer(request, signal);
      } catch (first) {
        if (!(first instanceof ResearcherFailedError) || !elsewhere.has(first.kind)) throw first;
        signal.throwIfAborted();
        try {
          const answer = await fallback.answer({ ...request, allowance: minus(request.allowance, first.usage) }, signal);
          return answered(first, answer);
        } catch (second) {
          if (!(second instanceof ResearcherFailedError)) throw second;
          throw bothFailed(first, second);
        }
      }
    },
  };
}

function answered(first: ResearcherFailedError, answer: RoleAnswer): RoleAnswer {
  return { ...answer, usage: plus(first.usage, answer.usage), model: joined(first, answer.model) };
}

function bothFailed(first: ResearcherFailedError, second: ResearcherFailedError): ResearcherFailedError {
  // A fallback that is too dear leaves things as they were without one: the first model may answer later.
  const { kind, todo } = second.kind === "budget" ? first : second;
  return new ResearcherFailedError(
    kind,
    `${first.message}; the fallback failed as well: ${second.message}`,
    plus(first.usage, second.usage),
    {
      cause: second,
      todo,
      model: joined(first, second.model) ?? first.model,
    },
  );
}

/** The use of whoever was asked last, which says why; the traffic of both. */
function joined(first: ResearcherFailedError, second: ModelRecord | null): ModelRecord | null {
  if (second === null) return null;
  const why = `${first.kind}: ${first.message}`.slice(0, 500);
  const before = first.model === null ? [] : exchangesOf(first.model.traffic);
  return {
    use: { ...second.use, warnings: [why, ...second.use.warnings].slice(0, 20) },
    traffic: trafficOf([...before, ...exchangesOf(second.traffic)]),
  };
}

const dimensions = ["trials", "costUsd", "tokens", "computeMs"] as const;

function plus(one: Amount, other: Amount): Amount {
  return each((dimension) => one[dimension] + other[dimension]);
}

function minus(one: Amount, other: Amount): Amount {
  return each((dimension) => Math.max(0, one[dimension] - other[dimension]));
}

function each(of: (dimension: (typeof dimensions)[number]) => number): Amount {
  return { trials: of("trials"), costUsd: of("costUsd"), tokens: of("tokens"), computeMs: of("computeMs") };
}
