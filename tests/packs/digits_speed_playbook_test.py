"""digits-speed's researchers: the protocol, programs that parse, repairs by the traceback, and a blind control."""

import ast
import unittest

from packs import ENVIRONMENTS, question, run_json

BASELINE = (ENVIRONMENTS / "digits-speed" / "baseline" / "solution.py").read_text(encoding="utf-8")
REFERENCE, CONTROL = ["playbook/researcher.py"], ["playbook/random_moves.py"]


def program_of(answer):
    return answer["files"]["solution.py"]


def ask(script, role, program=BASELINE, **options):
    return run_json("digits-speed", script, question(role, program, **options))


class DigitsResearchers(unittest.TestCase):
    def test_same_question_same_answer(self):
        for script in (REFERENCE, CONTROL):
            self.assertEqual(ask(script, "draft", seed=4), ask(script, "draft", seed=4))
            self.assertNotEqual(ask(script, "draft", seed=4), ask(script, "draft", seed=4, round=2))

    def test_programs_parse_and_are_varied(self):
        programs = [program_of(ask(REFERENCE, "draft", seed=seed)) for seed in range(10)]
        for program in programs:
            ast.parse(program)
            self.assertLess(len(program), 16 * 1024)
        self.assertGreaterEqual(len(set(programs)), 9)

    def test_improves_one_or_two_settings(self):
        base = program_of(ask(REFERENCE, "draft", seed=3))
        for script in (REFERENCE, CONTROL):
            answer = ask(script, "improve", base, status="keep", value=1.5)
            ast.parse(program_of(answer))
            self.assertRegex(answer["plan"]["hypothesis"], r"^Change \w+: ")
            self.assertNotEqual(program_of(answer), base)

    def test_repairs_a_refused_name(self):
        base = next(program for seed in range(200) if "generator.randint(" in (program := program_of(ask(REFERENCE, "draft", seed=seed))))
        output = "Traceback (most recent call last):\n  File \"solution.py\", line 40, in <module>\nAttributeError: 'numpy.random._generator.Generator' object has no attribute 'randint'\n"
        failure = {"status": "crashed", "stage": "train", "reason": "exit code 1", "output": output}
        repaired = program_of(ask(REFERENCE, "debug", base, status="crashed", failure=failure))
        self.assertIn("generator.integers(", repaired)

    def test_the_control_looks_at_nothing(self):
        base = program_of(ask(CONTROL, "draft", seed=3))
        failure = {"status": "crashed", "stage": "train", "reason": "", "output": "AttributeError"}
        self.assertEqual(ask(CONTROL, "improve", base), ask(CONTROL, "debug", base, status="crashed", failure=failure))


if __name__ == "__main__":
    unittest.main()
