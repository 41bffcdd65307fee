const clause = /^(>=|<=|==|!=|~=|>|<)\s*(\d+(?:\.\d+){0,2})(\.\*)?$/;

/** Whether a text is a version requirement that we understand: PEP 440 comparisons such as ">=3.10,<3.14". */
export function isVersionRequirement(text: string): boolean {
  return text.split(",").every((part) => {
    const match = clause.exec(part.trim());
    if (match === null) return false;
    const [, operator = "", wanted = "", wildcard] = match;
    if (wildcard !== undefined) return operator === "==" || operator === "!=";
    return operator !== "~=" || wanted.includes(".");
  });
}

/** Whether a version, such as 3.11.7, satisfies a requirement. */
export function satisfies(version: string, requirement: string): boolean {
  return requirement.split(",").every((part) => {
    const [, operator = "", wanted = "", wildcard] = clause.exec(part.trim()) ?? [];
    return holds(operator, numbers(version), numbers(wanted), wildcard !== undefined);
  });
}

function holds(operator: string, version: number[], wanted: number[], wildcard: boolean): boolean {
  const order = compare(version, wanted);
  const same = wildcard ? startsWith(version, wanted) : order === 0;
  switch (operator) {
    case ">=":
      return order >= 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case "<":
      return order < 0;
    case "~=":
      return order >= 0 && startsWith(version, wanted.slice(0, -1));
    case "!=":
      return !same;
    case "==":
      return same;
    default:
      return false;
  }
}

function numbers(version: string): number[] {
  return version.split(".").map(Number);
}

/** Missing parts count as 0, so that 3.11 is 3.11.0. */
function compare(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < 3; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function startsWith(version: readonly number[], prefix: readonly number[]): boolean {
  return prefix.every((part, i) => version[i] === part);
}
