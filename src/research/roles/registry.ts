import type { ViewName, viewBuilders } from "../../core/harness/views.js";
import { RefusedError } from "../../core/protocol/errors.js";
import { debug, draft, improve } from "./proposal.js";
import type { Role } from "./role.js";

/** What the view builders make: whichever it is, its role knows. */
export type AnyView = ReturnType<(typeof viewBuilders)[ViewName]>;

/** A new role is one file and its line here. */
const roles = [draft, debug, improve] as unknown as readonly Role<AnyView>[];

export const roleNames: readonly string[] = roles.map(({ name }) => name);

/** @throws RefusedError for a role that this build has not */
export function roleNamed(name: string): Role<AnyView> {
  const role = roles.find((each) => each.name === name);
  if (role !== undefined) return role;
  throw new RefusedError({
    expected: `one of the roles ${roleNames.join(", ")}`,
    found: JSON.stringify(name),
    where: "a call of this run",
    todo: "The run may come from a newer trialist: update, then resume it.",
  });
}
