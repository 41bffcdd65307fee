import { digestOf } from "../protocol/canonical.js";

/**
 * Random draws as a function of (run seed, name of the draw, index): the order of events cannot change them, and a
 * resumed run draws what the undisturbed one would.
 */
export interface Draw {
  /** Uniform in [0, 1), 52 bits. */
  uniform(name: string, index: number): number;
  /** Uniform among 0 … size − 1. @throws RangeError for a size below 1 */
  pick(name: string, index: number, size: number): number;
  /** A seed for somebody else's generator: 0 … 2^31 − 1. */
  seed(name: string, index: number): number;
}

export function drawsOf(runSeed: number): Draw {
  const bits = (name: string, index: number): string => digestOf(`${runSeed}\n${name}\n${index}`);
  const uniform = (name: string, index: number): number => Number.parseInt(bits(name, index).slice(0, 13), 16) / 2 ** 52;
  return {
    uniform,
    pick(name, index, size) {
      if (!Number.isInteger(size) || size < 1) throw new RangeError(`a pick needs a size of at least 1, ${size} was given`);
      return Math.floor(uniform(name, index) * size);
    },
    seed: (name, index) => Number.parseInt(bits(name, index).slice(0, 8), 16) % 2 ** 31,
  };
}
