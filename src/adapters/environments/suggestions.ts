/** Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours cost 1 each. */
export function editDistance(from: string, to: string): number {
  const rows: number[][] = Array.from({ length: from.length + 1 }, (_, i) => [i, ...new Array<number>(to.length).fill(0)]);
  const cell = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let j = 0; j <= to.length; j++) (rows[0] as number[])[j] = j;
  for (let i = 1; i <= from.length; i++) {
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1] ? 0 : 1;
      let best = Math.min(cell(i - 1, j) + 1, cell(i, j - 1) + 1, cell(i - 1, j - 1) + same);
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) best = Math.min(best, cell(i - 2, j - 2) + 1);
      (rows[i] as number[])[j] = best;
    }
  }
  return cell(from.length, to.length);
}

/** The known name that a mistyped one most likely meant; null when nothing is near enough to be worth saying. */
export function closest(mistyped: string, known: readonly string[]): string | null {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_ ]/g, "");
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const name of known) {
    const distance = editDistance(plain(mistyped).slice(0, 100), plain(name).slice(0, 100));
    if (distance < bestDistance) [best, bestDistance] = [name, distance];
  }
  const tolerated = Math.max(1, Math.floor(plain(mistyped).length / 3));
  return bestDistance <= tolerated ? best : null;
}

/** "did you mean `x`?", or the given advice when nothing is near. */
export function didYouMean(mistyped: string, known: readonly string[], otherwise: string): string {
  const near = closest(mistyped, known);
  return near === null ? otherwise : `did you mean \`${near}\`?`;
}
