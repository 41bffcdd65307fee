import type { Command, Decision } from "../../protocol/commands.js";
import type { RunEvent } from "../../protocol/events.js";
import { statusClasses } from "../../protocol/status.js";
import { type RunState, type Trial, trialNamed } from "../state.js";
import { isHeld, isParked } from "../steering.js";
import { acted, refuseOver } from "./acts.js";
import { type Handler, only, refuse } from "./decision.js";
import { closePlan, trialEnded } from "./trial-end.js";

type Of<T extends Command["type"]> = Extract<Command, { type: T }>;

/** Nothing starts from a held trial, and what it waits for does not start. It is no verdict: it may lead all the same. */
export const hold: Handler<Of<"hold">> = (state, command) => {
  const trial = standing(state, command.trial);
  if (trial.kind !== "search")
    throw refuse("a searched trial, such as t3", trial.id, "Everything starts from the baseline and the reference rows.");
  if (trial.phase !== "ended" && state.resumeTo === "finishing")
    throw refuse(
      "a run that goes on",
      "a run that is finishing",
      `\`trialist queue RUN remove ${trial.id} --reason …\` cancels a trial of which nothing runs.`,
    );
  return steered(state, command, "held");
};

/** What the next improvements start from. */
export const pin: Handler<Of<"pin">> = (state, command) => {
  const trial = standing(state, command.trial);
  if (trial.status === null)
    throw refuse("a trial that has ended", `${trial.id}, which is still measured`, "Wait for its end, then pin it.");
  if (statusClasses[trial.status] !== "valid")
    throw refuse("a trial with a valid result, which can be improved", `${trial.id}, which ended ${trial.status}`);
  return steered(state, command, "pinned");
};

export const release: Handler<Of<"release">> = (state, command) => {
  const { id } = standing(state, command.trial);
  if (state.steers[id] === undefined) throw refuse("a trial that is held or pinned", id, "`trialist status RUN` lists them.");
  return steered(state, command, "free");
};

function steered(state: RunState, { type, trial, reason }: Of<"hold" | "pin" | "release">, steer: "held" | "pinned" | "free"): Decision {
  if (state.steers[trial]?.steer === steer) return only();
  return only(acted(type, reason, trial), { type: "trial.steered", data: { trial, steer, reason } });
}

function standing(state: RunState, id: string): Trial {
  refuseOver(state);
  const trial = trialNamed(state, id);
  if (trial === null) throw refuse("a trial of this run, such as t3", JSON.stringify(id), "`trialist show RUN` lists them.");
  if (trial.retracted) throw refuse("a trial that stands", `${id}, which was retracted`, "Nothing starts from a retracted trial anyway.");
  return trial;
}

/** A run that comes to its end waits for no word any more: what is held and waits is cancelled, what is under way goes on. */
export function settleHeld(state: RunState, reason: string): RunEvent[] {
  return state.openTrials
    .filter((trial) => isHeld(state, trial))
    .flatMap((trial): RunEvent[] => {
      if (!isParked(state, trial))
        return [{ type: "trial.steered", data: { trial, steer: "free", reason: "it is under way, and the run is finishing" } }];
      const why = `held by the operator when the run ended: ${reason}`;
      return [
        trialEnded({ trial, status: "cancelled", reason: why, bestAtEnd: state.leader?.trial ?? null }),
        ...closePlan(state, trial, "cancelled"),
      ];
    });
}
