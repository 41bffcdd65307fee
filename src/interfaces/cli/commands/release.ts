import { steerCommandOf } from "../steer-command.js";

export const command = steerCommandOf(
  "release",
  "Takes a hold or a pin of a trial back.",
  "trialist release night t7 --reason 'no leak: looked'",
);
