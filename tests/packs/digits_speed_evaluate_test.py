"""The evaluator of digits-speed: the mean over all repeats, a reason for everything else, never a crash."""

import os
import unittest

from packs import Evaluation

HEADER = "id,digit\n"
GOOD = HEADER + "0,7\n1,3\n2,5\n"


class DigitsEvaluator(unittest.TestCase):
    def setUp(self):
        inloop = {"test_ids.csv": "id\n0\n1\n2\n", "labels.csv": "id,digit\n0,7\n2,5\n"}
        self.evaluation = Evaluation("digits-speed", inloop, {"labels.csv": "id,digit\n1,4\n"})
        self.addCleanup(self.evaluation.close)
        self.evaluation.write("repeat-1/predictions.csv", GOOD)
        self.evaluation.write("repeat-2/predictions.csv", GOOD.replace("2,5", "2,6"))

    def measure(self, **options):
        return self.evaluation.measure("--repeats", "2", **options)

    def refused(self, content, words):
        self.evaluation.write("repeat-2/predictions.csv", content)
        measurement = self.measure()
        self.assertEqual(list(measurement), ["invalid"], f"{content[:80]!r} was accepted")
        self.assertRegex(measurement["invalid"], words)
        self.assertLess(len(measurement["invalid"]), 300)

    def test_averages_over_the_repeats(self):
        measurement = self.measure()
        self.assertEqual(measurement["metrics"], {"accuracy": 0.75})
        self.assertEqual(measurement["records"], {"metric": "accuracy", "ids": ["0", "2"], "values": [1, 0.5]})
        self.assertEqual(self.measure(heldout=True)["metrics"], {"accuracy": 0})

    def test_takes_other_line_ends_and_orders(self):
        self.evaluation.write("repeat-2/predictions.csv", "id,digit\r\n2,5\r\n0,7\r\n1,3")
        self.assertEqual(self.measure()["metrics"], {"accuracy": 1})

    def test_refuses_what_is_not_a_digit_for_every_id(self):
        self.refused(HEADER + "0,7\n1,3\n", "repeat-2/predictions.csv: 1 of 3 test ids are missing")
        self.refused(GOOD + "2,5\n", "line 5 gives the id 2 a second time")
        self.refused(GOOD + "3,5\n", "'3' is not a test id")
        for digit in ("10", "-1", "7.0", "nan", "", " 7", "7 ", "7,7", "a", "0" * 10_000):
            self.refused(HEADER + f"0,7\n1,3\n2,{digit}\n", "expected an id, a comma and a digit")
        for text in ("", "\n", "digit,id\n", HEADER + "0;7\n", HEADER + "\n"):
            self.refused(text, "header|expected|missing")

    def test_refuses_what_is_no_text(self):
        self.refused("id,digit\n0,\uff17\n", "not ASCII")
        self.refused(b"\x93NUMPY\x01\x00", "not ASCII")
        self.refused(b"\0" * 1000, "header")
        self.refused("x" * 70_000, "larger than")

    def test_refuses_a_missing_repeat_and_what_is_no_regular_file(self):
        path = self.evaluation.artifacts / "repeat-2" / "predictions.csv"
        path.unlink()
        self.assertRegex(self.measure()["invalid"], "repeat-2/predictions.csv cannot be opened")
        path.symlink_to("../repeat-1/predictions.csv")
        self.assertRegex(self.measure()["invalid"], "cannot be opened")
        path.unlink()
        os.mkfifo(path)
        self.assertRegex(self.measure()["invalid"], "not a regular file")
        path.unlink()
        path.mkdir()
        self.assertRegex(self.measure()["invalid"], "not a regular file")


if __name__ == "__main__":
    unittest.main()
