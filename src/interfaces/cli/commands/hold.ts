import { steerCommandOf } from "../steer-command.js";

export const command = steerCommandOf(
  "hold",
  "Lets nothing start from a trial for now, and what it still waits for not begin. It stays what it is: the best, if it is the best.",
  "trialist hold night t7 --reason 'looks like a leak'",
);
