/** A program that gives the same answers on every seed, and an evaluator that scores each of forty records. */
export function recordPack(reference: boolean): Record<string, string> {
  return {
    "environment.yaml": `schema: trialist/environment@1
name: records
surface: { editable: ["factor.txt"] }
baseline: baseline/
${reference ? "references: { other: other/ }\n" : ""}stages:
  - { name: train, run: cat factor.txt > $TRIALIST_OUTPUT/factor.txt, outputs: [factor.txt] }
  - { name: measure, trust: evaluator, run: sh evaluate.sh }
metrics: [{ name: score, direction: maximize }]
noise: { calibrate: 2, remeasure_every: 0 }
`,
    "evaluate.sh": `awk -v factor="$(cat $TRIALIST_ARTIFACTS/factor.txt)" 'BEGIN {
  for (i = 1; i <= 40; i++) {
    value = (i * factor * 7919) % 101; sum += value
    ids = ids (i > 1 ? "," : "") i; values = values (i > 1 ? "," : "") value
  }
  printf "{\\"metrics\\":{\\"score\\":%.12g},\\"records\\":{\\"metric\\":\\"score\\",\\"ids\\":[%s],\\"values\\":[%s]}}", sum / 40, ids, values
}' > $TRIALIST_MEASUREMENT
`,
    "baseline/factor.txt": "3\n",
    ...(reference ? { "other/factor.txt": "5\n" } : {}),
  };
}
