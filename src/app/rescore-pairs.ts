import type { CandidateManifest } from "../core/protocol/candidate.js";
import { TrialistError } from "../core/protocol/errors.js";
import { type MetricValues, primaryMetric, type RecordSet, recordSet } from "../core/protocol/measurement.js";
import type { Packet } from "../core/protocol/packet.js";
import type { Verdict } from "../core/protocol/verdict.js";
import type { PairedSide } from "../core/statistics/paired.js";
import { type Reproduction, reproductionOf, type SameSeeds, sameSeedsOf } from "../core/statistics/reproduction.js";
import { pairedVerdict } from "../core/statistics/verdict.js";
import { measureAgain } from "../research/engine/measure-again.js";
import type { AloneHost } from "../research/engine/measure-alone.js";

/** The evaluator or the machine failed, so that nothing can be said of the packet. */
export class RescoreFailedError extends TrialistError {
  readonly kind = "infrastructure";
}

/** What measuring again gave. */
export interface Rescored {
  readonly result: Reproduction;
  readonly reason: string;
  readonly seeds: { readonly recorded: readonly number[]; readonly fresh: readonly number[] };
  /** Candidate against what it was compared with: on the run's seeds, and on fresh ones, on which the result stands. */
  readonly here: { readonly recordedSeeds: Verdict | null; readonly freshSeeds: Verdict | null; readonly overBaseline: Verdict | null };
  /** Values on the run's seeds, there and here. */
  readonly sameSeeds: SameSeeds;
  readonly measurements: readonly { readonly subject: Subject; readonly seed: number; readonly values: MetricValues }[];
}

type Subject = "candidate" | "comparator" | "baseline";

interface Measured {
  readonly subject: Subject;
  readonly seed: number;
  readonly values: MetricValues;
  readonly records: RecordSet | null;
}

/** A subject that did not come to a value. */
interface Fallen {
  readonly subject: Subject;
  readonly how: string;
}

/** Candidate and comparator, and the baseline where that is a third one, in turn on each seed. */
export class PacketPairs {
  private readonly measured: Measured[] = [];
  private readonly subjects: readonly Subject[];

  constructor(
    private readonly host: AloneHost,
    private readonly packet: Packet,
    private readonly blob: (digest: string) => Uint8Array,
    private readonly progress: (line: string) => void,
  ) {
    this.subjects = packet.comparator === "t0" ? ["candidate", "comparator"] : ["candidate", "comparator", "baseline"];
  }

  /** @throws RescoreFailedError when the evaluator or the machine fails */
  async measure(fresh: readonly number[]): Promise<Rescored> {
    const { confirmations, environment } = this.packet.seeds;
    const recorded = confirmations.length > 0 ? confirmations : [environment];
    const fallen = await this.onSeeds([...recorded, ...fresh]);
    const verdict = (seeds: readonly number[], against: Subject): Verdict | null =>
      fallen === null ? this.verdictOn(seeds, against) : null;
    const here = {
      recordedSeeds: verdict(recorded, "comparator"),
      freshSeeds: verdict(fresh, "comparator"),
      overBaseline: verdict(fresh, this.packet.comparator === "t0" ? "comparator" : "baseline"),
    };
    return {
      ...this.judge(here.freshSeeds, fallen),
      seeds: { recorded, fresh },
      here,
      sameSeeds: this.compareSeeds(),
      measurements: this.measured.map(({ subject, seed, values }) => ({ subject, seed, values })),
    };
  }

  private async onSeeds(seeds: readonly number[]): Promise<Fallen | null> {
    const total = seeds.length * this.subjects.length;
    for (const [index, seed] of seeds.entries()) {
      for (const [place, subject] of this.subjects.entries()) {
        const name = `${index * this.subjects.length + place + 1} of ${total}: ${subject} on seed ${seed}`;
        const result = await measureAgain(this.host, `again-${index}-${subject}`, this.manifest(subject), seed);
        if (result.values === null) {
          const how = `${result.ended}: ${result.reason ?? "no reason was given"}`;
          this.progress(`${name}: ${how}`);
          if (result.ended === "evaluator_failure" || result.ended === "infrastructure_error" || result.ended === "interrupted")
            throw new RescoreFailedError({
              expected: "the packet's evaluator to measure",
              found: how,
              where: subject,
              todo: "Whether the packet holds what it claims is not known.",
            });
          return { subject, how };
        }
        this.progress(`${name}: ${JSON.stringify(result.values)}`);
        const records =
          result.records === null ? null : recordSet.parse(JSON.parse(new TextDecoder().decode(this.blob(result.records.blob))));
        this.measured.push({ subject, seed, values: { ...result.values }, records });
      }
    }
    return null;
  }

  private manifest(subject: Subject): CandidateManifest {
    return this.packet.candidates[subject];
  }

  private verdictOn(seeds: readonly number[], against: Subject): Verdict {
    const metric = primaryMetric(this.host.prepared.environment);
    const side = (subject: Subject, seed: number): PairedSide => {
      const found = this.measured.find((each) => each.subject === subject && each.seed === seed);
      return { value: found?.values[metric.name] ?? Number.NaN, records: found?.records?.metric === metric.name ? found.records : null };
    };
    const pairs = seeds.map((seed) => ({ seed, candidate: side("candidate", seed), leader: side(against, seed) }));
    return pairedVerdict(pairs, metric.direction, this.packet.promotion.level, {
      deterministic: this.packet.noise?.deterministic ?? false,
    });
  }

  private judge(fresh: Verdict | null, fallen: Fallen | null): Pick<Rescored, "result" | "reason"> {
    const { verdict, promotion } = this.packet;
    if (fallen !== null)
      return fallen.subject === "candidate"
        ? { result: "not_reproduced", reason: `the candidate ended ${fallen.how}` }
        : { result: "undecided", reason: `nothing to compare with: the ${fallen.subject} ended ${fallen.how}` };
    if (verdict === null || fresh === null) return { result: "undecided", reason: "the packet holds no verdict to compare with" };
    const result = reproductionOf(verdict, fresh, promotion.rule === "threshold" ? promotion.minimumGain : null);
    return { result, reason: `${verdict.result} there, ${fresh.result} here on fresh seeds` };
  }

  private compareSeeds(): SameSeeds {
    const { measurements, comparator } = this.packet;
    const pairs = this.measured.flatMap(({ subject, seed, values }): [MetricValues, MetricValues][] => {
      const before = measurements.find(
        (each) =>
          each.seed === seed &&
          (each.subject === subject || (comparator === "t0" && subject !== "candidate" && each.subject === "baseline")),
      );
      return before === undefined ? [] : [[before.values, values]];
    });
    const clocks = this.host.prepared.environment.metrics.filter((metric) => metric.from.kind === "wall").map((metric) => metric.name);
    return sameSeedsOf(pairs, new Set(clocks));
  }
}
