/** Whether a JSON value is nested more than so many levels deep; never goes deeper than that itself. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((each) => isDeeperThan(each, levels - 1));
}
