import { drawsOf } from "../../core/harness/draw.js";
import { configurationOf, type RunState } from "../../core/harness/state.js";
import type { Gate } from "../../core/protocol/gate.js";
import { drawnLooks, drawsFor, type GateRule, keptAmong, type Look } from "../../core/statistics/gate-error.js";
import { copiesOf } from "./copies.js";
import { copyLooks, type ReadRecords, recordSource, type Source, seedSource } from "./differences.js";

/** Multiples of the smallest visible gain that are planted where nobody names gains. */
const multiples = [0.5, 1, 2];

/**
 * All that a finished run of copies tells of the rule's errors: what it kept, what it would keep of differences drawn from
 * its measurements, and how often it finds a gain that is put into them. `planted` null: multiples of the smallest visible gain.
 */
export function measuredGate(state: RunState, read: ReadRecords, planted: readonly number[] | null): Gate {
  const { run, seed } = configurationOf(state);
  const copies = copiesOf(state);
  const draws = drawsOf(seed);
  const source = recordSource(state, read) ?? (copies.identical ? seedSource(state) : null);
  const rule = ruleOf(state);
  // Copies that are equal record by record would make every gain look certain.
  const gains = source === null && copies.identical && rule.noise.records ? [] : (planted ?? defaultGains(state));
  return {
    run,
    measuredAt: state.lastAt,
    copies,
    resampled:
      source === null
        ? null
        : { from: source.from, records: source.records, ...keptAmong(drawn(source, rule, draws.seed("gate/null", 0)), 0, rule) },
    planted: gains.map((gain) => {
      // The same candidates for every gain, so that a larger one is never found less often.
      const { from, looks } = plantedInto(state, source, rule, draws.seed("gate/planted", 0));
      return { gain, from, kept: keptAmong(looks, gain, rule).kept };
    }),
  };
}

/** What is drawn, where verdicts take records or copies do not differ; else the copies as they were measured. */
function plantedInto(
  state: RunState,
  source: Source | null,
  rule: GateRule,
  seed: number,
): { readonly from: Source["from"]; readonly looks: Iterable<Look> } {
  if (source !== null) return { from: source.from, looks: drawn(source, rule, seed) };
  const looks = copyLooks(state, seed);
  if (looks !== null) return { from: "pairs", looks };
  const values = seedSource(state);
  return values === null ? { from: "pairs", looks: [] } : { from: values.from, looks: drawn(values, rule, seed) };
}

function drawn({ differences, records }: Source, { promotion }: GateRule, seed: number): Iterable<Look> {
  const pairs = promotion.rule === "confirmed" ? promotion.confirmations : 0;
  return drawnLooks(differences, { pairs, draws: drawsFor(records, pairs), seed });
}

function defaultGains(state: RunState): number[] {
  const smallest = state.noise?.smallestGain ?? null;
  return smallest === null || smallest === 0 ? [] : multiples.map((multiple) => multiple * smallest);
}

function ruleOf(state: RunState): GateRule {
  const { promotion } = configurationOf(state);
  if (state.noise === null) throw new RangeError("a run of copies that has ended is calibrated");
  return { promotion, noise: state.noise };
}
