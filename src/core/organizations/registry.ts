import { RefusedError } from "../protocol/errors.js";
import { list } from "./list/index.js";
import type { Organization } from "./organization.js";
import { sessions } from "./sessions/index.js";
import { tree } from "./tree/index.js";

/** An organization whose fold and configuration only itself looks into. */
export type AnyOrganization = Organization<unknown, unknown>;

const organizations: Readonly<Record<string, AnyOrganization>> = {
  list: list as AnyOrganization,
  tree: tree as AnyOrganization,
  sessions: sessions as AnyOrganization,
};

export const organizationNames = Object.keys(organizations);

/** Names of those whose moves ask for long sessions. */
export const sessionOrganizations = organizationNames.filter((name) => organizations[name]?.asks === "sessions");

/** @throws RefusedError for a name that is none */
export function organizationNamed(name: string): AnyOrganization {
  const organization = Object.hasOwn(organizations, name) ? organizations[name] : undefined;
  if (organization !== undefined) return organization;
  throw new RefusedError({ expected: `an organization: ${organizationNames.join(", ")}`, found: JSON.stringify(name) });
}
