/**
 * A generator of uniform numbers in [0, 1) that is a function of its seed alone: xoshiro128** (Blackman & Vigna, "Scrambled
 * linear pseudorandom number generators", 2021), its state filled by splitmix32. For simulations of many million draws,
 * where a hash per draw is too slow.
 */
export function generatorOf(seed: number): () => number {
  let [a, b, c, d] = stateOf(seed);
  return () => {
    const scrambled = Math.imul(rotated(Math.imul(b, 5), 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotated(d, 11);
    return scrambled / 2 ** 32;
  };
}

/** A place in a list of this size. */
export function placeIn(size: number, uniform: () => number): number {
  return Math.floor(uniform() * size);
}

function stateOf(seed: number): [number, number, number, number] {
  let walk = seed >>> 0;
  const next = (): number => {
    walk = (walk + 0x9e3779b9) >>> 0;
    let mixed = walk;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
  return [next(), next(), next(), next()];
}

function rotated(value: number, by: number): number {
  return (value << by) | (value >>> (32 - by));
}
