import { steerCommandOf } from "../steer-command.js";

export const command = steerCommandOf(
  "pin",
  "Lets the next improvements start from a trial, until it is released; several pinned ones take turns.",
  "trialist pin night t4 --reason 'the simplest one that works'",
);
