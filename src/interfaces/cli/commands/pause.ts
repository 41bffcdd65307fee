import { operatorCommandOf } from "../operator-command.js";

export const command = operatorCommandOf(
  "pause",
  "Stops a run at its next safe point: the stages that run now end, nothing new starts.",
  "trialist pause night --reason 'need the machine'",
);
