"""The null control of the packs: the same program, never the same bytes."""

import ast
import subprocess
import unittest

from packs import ENVIRONMENTS, question, run_json

SCRIPT = ["playbook/null_change.py"]
PACKS = ("flchain", "digits-speed")


def ask(pack, program, role="draft", **options):
    return run_json(pack, SCRIPT, question(role, program, **options))


class NullChange(unittest.TestCase):
    def setUp(self):
        self.baselines = {pack: (ENVIRONMENTS / pack / "baseline" / "solution.py").read_text(encoding="utf-8") for pack in PACKS}

    def test_is_one_file_in_all_packs_and_named_there(self):
        copies = {(ENVIRONMENTS / pack / SCRIPT[0]).read_bytes() for pack in PACKS}
        self.assertEqual(len(copies), 1)
        for pack in PACKS:
            self.assertIn('\n  "null": python3 playbook/null_change.py', (ENVIRONMENTS / pack / "environment.yaml").read_text(encoding="utf-8"))

    def test_proposes_the_same_program_in_other_bytes(self):
        for pack, baseline in self.baselines.items():
            for role in ("draft", "improve", "debug"):
                answer = ask(pack, baseline, role)
                self.assertEqual(list(answer["files"]), ["solution.py"])
                changed = answer["files"]["solution.py"]
                self.assertNotEqual(changed, baseline)
                self.assertEqual(ast.dump(ast.parse(changed)), ast.dump(ast.parse(baseline)))
                self.assertTrue(changed.startswith(baseline))

    def test_another_seed_or_round_is_another_proposal(self):
        for pack, baseline in self.baselines.items():
            self.assertEqual(ask(pack, baseline, seed=4), ask(pack, baseline, seed=4))
            asked = [ask(pack, baseline, seed=seed, round=round)["files"]["solution.py"] for seed in (1, 2, 3) for round in (1, 2)]
            self.assertEqual(len(set(asked)), len(asked))

    def test_does_not_grow_over_generations(self):
        program = baseline = self.baselines["flchain"]
        for seed in range(4):
            program = ask("flchain", program, "improve", seed=seed)["files"]["solution.py"]
        self.assertEqual(len(program.splitlines()), len(baseline.splitlines()) + 1)

    def test_comments_as_the_language_does_and_refuses_where_it_knows_none(self):
        other = question("improve", "")
        other["view"]["base"]["files"] = {"a.txt": "no code", "train.mjs": "f()"}
        self.assertRegex(run_json("flchain", SCRIPT, other)["files"]["train.mjs"], r"^f\(\)\n// null change [0-9a-f]{8}\n$")
        other["view"]["base"]["files"] = {"a.txt": "no code"}
        self.assertRaises(subprocess.CalledProcessError, run_json, "flchain", SCRIPT, other)


if __name__ == "__main__":
    unittest.main()
