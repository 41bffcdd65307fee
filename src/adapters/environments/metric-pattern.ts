/** Longest pattern that is accepted. */
const patternMaxLength = 500;

/**
 * Why the pattern of a metric cannot be used, or null when it can. It searches text that a candidate chooses, so one
 * that can take time exponential in a line's length is refused.
 */
export function patternFault(pattern: string): string | null {
  if (pattern.length > patternMaxLength) return `it is longer than ${patternMaxLength} characters`;
  let groups: number;
  try {
    groups = (new RegExp(`${pattern}|`, "gm").exec("") ?? []).length - 1;
  } catch (error) {
    return `it is no regular expression: ${(error as Error).message}`;
  }
  if (groups < 1) return "it has no group ( ) that holds the number";
  if (/\\[1-9]|\\k</.test(pattern)) return "it refers back to a group, which can take unbounded time";
  if (repeatsRepetition(pattern)) return "it repeats a repetition, such as (a+)+, which can take unbounded time";
  return null;
}

/** Finds `(a+)+` and its like: a repeated group that itself repeats something without an upper bound. */
function repeatsRepetition(pattern: string): boolean {
  const plain = pattern.replaceAll(/\\./g, "x").replaceAll(/\[[^\]]*\]/g, "x");
  const open: { repeats: boolean }[] = [];
  for (let at = 0; at < plain.length; at++) {
    const rest = plain.slice(at + 1);
    const unbounded = /^([*+]|\{\d+,\})/.test(rest);
    const repeated = unbounded || /^\{\d+(,\d+)?\}/.test(rest);
    if (plain[at] === "(") {
      open.push({ repeats: false });
      continue;
    }
    const closed = plain[at] === ")" ? open.pop() : undefined;
    if (closed?.repeats === true && repeated) return true;
    const outer = open.at(-1);
    if (outer !== undefined && (unbounded || closed?.repeats === true)) outer.repeats = true;
  }
  return false;
}
