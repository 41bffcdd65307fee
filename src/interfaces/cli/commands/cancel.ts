import { operatorCommandOf } from "../operator-command.js";

export const command = operatorCommandOf(
  "cancel",
  "Ends a run at once; open trials are cancelled, what was measured stays.",
  "trialist cancel night --reason 'wrong data'",
);
