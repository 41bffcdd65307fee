// What an exported run says of its role calls. Events are those of `trialist export`.

const callEnds = ["call.answered", "call.refused", "call.failed"];
const roundsOf = (events) => events.filter(({ type }) => callEnds.includes(type));

/** How many answers of the model are on record, whatever became of them. */
export function proposalsIn(events) {
  return roundsOf(events).filter(({ data }) => (data.output ?? null) !== null).length;
}

/** Rounds of calls by what became of them: taken, the codes of what was wrong, or the kind of failure. */
export function callsOf(events) {
  return counts(
    roundsOf(events).map(({ type, data }) => {
      if (type === "call.answered") return "taken as a trial";
      if (type === "call.failed") return `no answer: ${data.kind}`;
      return `refused: ${[...new Set(data.violations.map(({ code }) => code))].join(", ")}`;
    }),
  );
}

/** Trials by their status. */
export function statusesOf(events) {
  return counts(events.filter(({ type }) => type === "trial.ended").map(({ data }) => data.status));
}

/** What the run was billed for its model. */
export function billOf(events) {
  const bill = { requests: 0, input: 0, cachedInput: 0, output: 0, billedAtWorst: 0, costUsd: 0, tokens: 0 };
  for (const { data } of roundsOf(events)) {
    const { model, usage } = data;
    bill.tokens += usage.tokens;
    if (model === null) continue;
    for (const what of ["input", "cachedInput", "output"]) bill[what] += model.tokens[what];
    for (const what of ["requests", "billedAtWorst", "costUsd"]) bill[what] += model[what];
  }
  return bill;
}

function counts(words) {
  const found = {};
  for (const word of words) found[word] = (found[word] ?? 0) + 1;
  return found;
}
