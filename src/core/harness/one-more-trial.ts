import { organizationNamed } from "../organizations/registry.js";
import { type Amount, type BudgetDimension, exceeds, nothing, openAccount } from "../protocol/budget.js";
import { callReservation, type RunConfiguration } from "../protocol/run.js";
import { worstCase } from "./decide/measurements.js";

type Asking = Pick<RunConfiguration, "organization" | "environment" | "callReservations">;

/** What one more trial reserves at least, one after the other: the cheapest question of the organization, and a pass of all stages. */
export function oneMoreTrial({ organization, environment, callReservations }: Asking): {
  readonly question: Amount;
  readonly pass: Amount;
} {
  const asked = organizationNamed(organization.name).roles.map((role) => ({ trials: 1, ...callReservation({ callReservations }, role) }));
  const least = (of: keyof Amount): number => (asked.length === 0 ? 0 : Math.min(...asked.map((amount) => amount[of])));
  return {
    question: { trials: least("trials"), costUsd: least("costUsd"), tokens: least("tokens"), computeMs: least("computeMs") },
    pass: worstCase(environment.stages),
  };
}

/** The first cap of a run that has spent nothing under which no trial can come about, and what it would have to cover; null: there is none. */
export function uncovered(
  configuration: Asking & Pick<RunConfiguration, "budget">,
): { readonly of: "question" | "pass"; readonly dimension: BudgetDimension; readonly least: number } | null {
  const wanted = oneMoreTrial(configuration);
  for (const of of ["question", "pass"] as const) {
    const dimension = exceeds(openAccount(), configuration.budget, wanted[of]);
    if (dimension !== null) return { of, dimension, least: wanted[of][dimension] };
  }
  return null;
}

/** The same beside what is spent, as the cap of one dimension has it. */
export function hasRoomForOneMore(spent: Amount, configuration: Asking & Pick<RunConfiguration, "budget">, of: BudgetDimension): boolean {
  const { question, pass } = oneMoreTrial(configuration);
  // A question's own CPU time is left out: runs were extended without it, and are decided again as they were.
  const wanted = of === "computeMs" ? pass.computeMs : question[of];
  return exceeds({ spent: { ...spent }, reserved: { ...nothing } }, configuration.budget, { ...nothing, [of]: wanted }) === null;
}
