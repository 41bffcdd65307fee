"""Runs the loop of aideml's `Experiment.run` in the working folder and prints one line of JSON per step.

Beside it `aide`, the command, also draws a live tree on the terminal and asks for a report at its end: left out here, which
flatters aideml.
"""

import json
import sys
import time

import aide
from aide.interpreter import Interpreter
from aide.utils.config import save_run
from omegaconf import OmegaConf


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
        self.process_seconds += time.time() - begun

    def run(self, *args, **kwargs):
        self.process_seconds = 0.0
        result = super().run(*args, **kwargs)
        self.process_seconds += self.event_outq.ready_at - self._created_at
        return result


def main(steps, data_folder, model):
    experiment = aide.Experiment(data_dir=data_folder, goal="Print a higher score.", eval="the printed score; higher is better")
    config, journal = experiment.cfg, experiment.journal
    config.agent.code.model = model
    config.agent.feedback.model = model
    interpreter = TimedInterpreter(config.workspace_dir, **OmegaConf.to_container(config.exec))
    for _ in range(steps):
        begun = time.time()
        experiment.agent.step(exec_callback=interpreter.run)
        save_run(config, journal)
        ended = time.time()
        node = journal[len(journal) - 1]
        line = {
            "begun": begun * 1000,
            "ended": ended * 1000,
            "scriptMs": node.exec_time * 1000,
            "processMs": interpreter.process_seconds * 1000,
            "isBuggy": bool(node.is_buggy),
        }
        print(f"STEP {json.dumps(line)}", flush=True)
    interpreter.cleanup_session()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
