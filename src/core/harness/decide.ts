import type { Command, Decision } from "../protocol/commands.js";
import { adjudicate } from "./decide/adjudicate.js";
import { advance } from "./decide/advance.js";
import { answerCall, failCall } from "./decide/calls.js";
import type { Handler } from "./decide/decision.js";
import { extend } from "./decide/extend.js";
import { fork } from "./decide/fork.js";
import { endAttempt, endStage, startAttempt, startStage } from "./decide/measurements.js";
import { pruneBlobs } from "./decide/prune.js";
import { cancelTrial, dequeue, enqueue, requeue } from "./decide/queue.js";
import {
  cancel,
  commitKnowledge,
  conclude,
  exhaust,
  finish,
  fireWakeUp,
  note,
  openSpan,
  pause,
  resume,
  retract,
  start,
  suspend,
} from "./decide/run.js";
import { closeSession, endTurn, openSession, recordTool, reserveTurn } from "./decide/sessions.js";
import { hold, pin, release } from "./decide/steer.js";
import { submit } from "./decide/submissions.js";
import type { RunState } from "./state.js";

type Handlers = { readonly [T in Command["type"]]: Handler<Extract<Command, { type: T }>> };

const handlers: Handlers = {
  start,
  open_span: openSpan,
  advance,
  answer_call: answerCall,
  fail_call: failCall,
  submit,
  enqueue,
  dequeue,
  requeue,
  cancel_trial: cancelTrial,
  open_session: openSession,
  reserve_turn: reserveTurn,
  end_turn: endTurn,
  record_tool: recordTool,
  close_session: closeSession,
  start_attempt: startAttempt,
  start_stage: startStage,
  end_stage: endStage,
  end_attempt: endAttempt,
  adjudicate,
  fire_wake_up: fireWakeUp,
  commit_knowledge: commitKnowledge,
  exhaust,
  conclude,
  extend,
  fork,
  suspend,
  pause,
  resume,
  finish,
  cancel,
  retract,
  hold,
  pin,
  release,
  note,
  prune_blobs: pruneBlobs,
};

/**
 * What a command means in this state: the events to append, or a refusal. Pure: the same state and command give the
 * same answer, and the state is only read.
 * @throws RefusedError when the state does not allow it; nothing was recorded
 */
export function decide(state: RunState, command: Command): Decision {
  const handle = handlers[command.type] as Handler<Command>;
  return handle(state, command);
}
