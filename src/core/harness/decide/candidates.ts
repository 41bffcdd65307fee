import { organizationNamed } from "../../organizations/registry.js";
import type { CandidateProposal } from "../../protocol/commands.js";
import type { Violation } from "../../protocol/events.js";
import type { ManifestReference } from "../../protocol/ids.js";
import { surfaceViolations, violation } from "../admission.js";
import { configurationOf, type RunState } from "../state.js";

/** What keeps a candidate out, whoever brings it: the surface, and where the organization wants it, that it was tried before. */
export function candidateViolations(state: RunState, proposal: CandidateProposal): Violation[] {
  const configuration = configurationOf(state);
  const problems = surfaceViolations(configuration.environment.surface, proposal.edited, proposal.manifest);
  const twin = triedAs(state, proposal.candidate);
  if (twin !== undefined) {
    problems.push(violation("duplicate_candidate", `this is the same content as trial ${twin}, which was measured already`, null));
  }
  return problems;
}

/** The trial that measured the same content, where the organization does not want it measured again. */
export function triedAs(state: RunState, { blob }: ManifestReference): string | undefined {
  return organizationNamed(configurationOf(state).organization.name).duplicates === "refuse" ? state.candidates[blob] : undefined;
}
