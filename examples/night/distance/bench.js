// Prints how many thousand pairs of words are compared in a second. The best of 60 rounds, since other work can only slow one down.
import { distance } from "./distance.js";

let state = Number(process.env.TRIALIST_SEED ?? "0") + 1;
function draw(below) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
}
const letters = "etaoinshrdlu";
const word = () => Array.from({ length: 6 + draw(12) }, () => letters[draw(letters.length)]).join("");

const pairs = Array.from({ length: 2000 }, () => [word(), word()]);
// Every answer is checked against the definition; this is also the warm-up.
for (const [left, right] of pairs) {
  const known = new Map();
  const expected = defined(0, 0);
  if (distance(left, right) !== expected) throw new Error(`distance("${left}", "${right}") is ${distance(left, right)}, not ${expected}`);

  function defined(at, other) {
    if (at === left.length) return right.length - other;
    if (other === right.length) return left.length - at;
    const key = at * 32 + other;
    if (!known.has(key)) {
      const change = defined(at + 1, other + 1) + (left[at] === right[other] ? 0 : 1);
      known.set(key, Math.min(change, defined(at + 1, other) + 1, defined(at, other + 1) + 1));
    }
    return known.get(key);
  }
}

let best = 0;
const rounds = 60;
for (let round = 0; round < rounds; round += 1) {
  const start = process.hrtime.bigint();
  for (const [left, right] of pairs) distance(left, right);
  best = Math.max(best, pairs.length / (Number(process.hrtime.bigint() - start) / 1e6));
}
console.log(JSON.stringify({ thousand_pairs_per_second: Number(best.toFixed(1)), rounds }));
