import { operatorCommandOf } from "../operator-command.js";

export const command = operatorCommandOf(
  "finish",
  "Ends a run early and clean: what is open may end, nothing new starts.",
  "trialist finish night --reason 'good enough'",
);
