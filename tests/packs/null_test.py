"""The null environment: noise by seed and candidate, and nothing else."""

import json
import os
import statistics
import subprocess
import tempfile
import unittest
from pathlib import Path

from packs import ENVIRONMENTS, question, run_json

PROGRAM = (ENVIRONMENTS / "null" / "baseline" / "solution.py").read_text(encoding="utf-8")


class NullEnvironment(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def loss(self, seed, program=PROGRAM):
        (self.root / "parameters.txt").write_text(program, encoding="utf-8")
        target = self.root / "measurement.json"
        environment = {**os.environ, "TRIALIST_SEED": str(seed), "TRIALIST_ARTIFACTS": str(self.root), "TRIALIST_MEASUREMENT": str(target)}
        subprocess.run(["sh", "evaluate.sh"], cwd=ENVIRONMENTS / "null", env=environment, check=True, timeout=30)
        return json.loads(target.read_text(encoding="utf-8"))["metrics"]["loss"]

    def test_the_loss_is_a_function_of_seed_and_program(self):
        self.assertEqual(self.loss(1), self.loss(1))
        self.assertNotEqual(self.loss(1), self.loss(2))
        self.assertNotEqual(self.loss(1), self.loss(1, PROGRAM + "\n"))

    def test_the_loss_is_normal(self):
        losses = [self.loss(seed) for seed in range(120)]
        self.assertAlmostEqual(statistics.mean(losses), 1, delta=0.03)
        self.assertAlmostEqual(statistics.stdev(losses), 0.1, delta=0.025)
        self.assertAlmostEqual(sum(abs(loss - 1) < 0.1 for loss in losses) / 120, 0.68, delta=0.15)

    def test_the_researcher_changes_one_number(self):
        ask = lambda **changes: run_json("null", ["-S", "-E", "playbook/researcher.py"], question("improve", PROGRAM, **changes))
        answer = ask()
        changed = answer["files"]["solution.py"]
        self.assertEqual(sum(a != b for a, b in zip(PROGRAM.splitlines(), changed.splitlines())), 1)
        self.assertEqual(answer, ask())
        self.assertNotEqual(answer, ask(round=2))


if __name__ == "__main__":
    unittest.main()
