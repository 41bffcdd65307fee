"""Runs aideml in the working folder and prints one line of JSON per step.

`command`: what the command `aide` runs, its tree of solutions included, which it draws for a terminal alone, but makes anew
after every step in any case. `library`: `aide.Experiment.run`, without that tree. Both save the journal after every step.
"""

import json
import os
import sys
import time

import aide
import aide.run
from aide.agent import Agent
from aide.interpreter import Interpreter

# aideml may put something of its own in place of standard output.
lines = os.fdopen(os.dup(1), "w", buffering=1)


class ReadyQueue:
    """The child's events, with a note of when it said that it is ready for the script."""

    def __init__(self, events):
        self._events = events
        self.ready_at = 0.0

    def get(self, *args, **kwargs):
        event = self._events.get(*args, **kwargs)
        if event[0] == "state:ready":
            self.ready_at = time.time()
        return event


class TimedInterpreter(Interpreter):
    """Counts apart what the start of a script's process takes, and the end of the one before."""

    process_seconds = 0.0
    _created_at = 0.0

    def create_process(self):
        self._created_at = time.time()
        super().create_process()
        self.event_outq = ReadyQueue(self.event_outq)

    def cleanup_session(self):
        begun = time.time()
        super().cleanup_session()
        TimedInterpreter.process_seconds += time.time() - begun

    def run(self, *args, **kwargs):
        TimedInterpreter.process_seconds = 0.0
        result = super().run(*args, **kwargs)
        TimedInterpreter.process_seconds += self.event_outq.ready_at - self._created_at
        return result


class Steps:
    """A step lasts until the next one begins: whatever is done after the agent's own step belongs to it."""

    def __init__(self):
        self._begun = None
        self._journal = None
        self._process_seconds = 0.0

    def wrap(self, step):
        def timed(agent, exec_callback):
            self.begin(agent.journal)
            step(agent, exec_callback)
            # The last one's child is ended after its step, and that is nobody's.
            self._process_seconds = TimedInterpreter.process_seconds

        return timed

    def begin(self, journal):
        now = time.time()
        self.end(now)
        self._begun = now
        self._journal = journal

    def end(self, now):
        if self._begun is None:
            return
        node = self._journal[len(self._journal) - 1]
        line = {
            "begun": self._begun * 1000,
            "ended": now * 1000,
            "scriptMs": node.exec_time * 1000,
            "processMs": self._process_seconds * 1000,
            "isBuggy": bool(node.is_buggy),
        }
        print(f"STEP {json.dumps(line)}", file=lines)


def run_command(steps, data_folder, goal, model):
    models = [f"agent.code.model={model}", f"agent.feedback.model={model}"]
    sys.argv = ["aide", f"data_dir={data_folder}", f"goal={goal}", f"agent.steps={steps}", *models, "generate_report=false"]
    aide.run.run()


def run_library(steps, data_folder, goal, model):
    experiment = aide.Experiment(data_dir=data_folder, goal=goal)
    experiment.cfg.agent.code.model = model
    experiment.cfg.agent.feedback.model = model
    experiment.run(steps)


def main(way, steps, data_folder, model):
    timed = Steps()
    Agent.step = timed.wrap(Agent.step)
    aide.Interpreter = aide.run.Interpreter = TimedInterpreter
    run = {"command": run_command, "library": run_library}[way]
    run(steps, data_folder, "Print a higher score.", model)
    timed.end(time.time())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
