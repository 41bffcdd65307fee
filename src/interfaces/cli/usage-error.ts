/** The command line itself is wrong: nothing was done. The message names the option. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly kind = "usage";
}
