/** The wake-up of the wall-clock cap: a run that goes on after its end gets another one, of its own name. */
export function wallBudget(continued: number): string {
  return continued === 0 ? "wall-budget" : `wall-budget-${continued + 1}`;
}

export function isWallBudget(wakeUp: string): boolean {
  return /^wall-budget(-\d+)?$/.test(wakeUp);
}
