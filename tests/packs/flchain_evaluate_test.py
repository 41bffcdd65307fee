"""The evaluator of flchain: right numbers for right submissions, a reason for everything else, never a crash."""

import math
import os
import socket
import unittest

from packs import Evaluation

HEADER = "id,alive,circulatory,other\n"
GOOD = HEADER + "a,0.5,0.3,0.2\nb,0.1,0.8,0.1\nc,0.2,0.2,0.6\nd,1,0,0\n"


class FlchainEvaluator(unittest.TestCase):
    def setUp(self):
        inloop = {"test_ids.csv": "id\nc\nd\na\nb\n", "labels.csv": "id,outcome\na,alive\nb,circulatory\n"}
        self.evaluation = Evaluation("flchain", inloop, {"labels.csv": "id,outcome\nc,other\nd,circulatory\n"})
        self.addCleanup(self.evaluation.close)

    def measured(self, content, **options):
        self.evaluation.write("submission.csv", content)
        return self.evaluation.measure(**options)

    def refused(self, content, words):
        measurement = self.measured(content)
        self.assertEqual(list(measurement), ["invalid"], f"{content[:80]!r} was accepted")
        self.assertRegex(measurement["invalid"], words)
        self.assertLess(len(measurement["invalid"]), 300)
        self.assertTrue(measurement["invalid"].isascii())

    def test_scores_the_in_loop_ids(self):
        measurement = self.measured(GOOD)
        self.assertAlmostEqual(measurement["metrics"]["log_loss"], -(math.log(0.5) + math.log(0.8)) / 2)
        self.assertEqual(measurement["metrics"]["accuracy"], 1)
        self.assertEqual(measurement["records"]["metric"], "log_loss")
        self.assertEqual(measurement["records"]["ids"], ["a", "b"])
        self.assertAlmostEqual(sum(measurement["records"]["values"]) / 2, measurement["metrics"]["log_loss"])

    def test_scores_the_held_out_ids_of_the_same_submission(self):
        measurement = self.measured(GOOD, heldout=True)
        self.assertEqual(measurement["records"]["ids"], ["c", "d"])
        self.assertAlmostEqual(measurement["records"]["values"][1], -math.log(1e-15))
        self.assertEqual(measurement["metrics"]["accuracy"], 0.5)

    def test_a_tie_is_a_wrong_answer(self):
        third = "0.333333,0.333333,0.333334"
        measurement = self.measured(HEADER + f"a,0.4,0.4,0.2\nb,{third}\nc,{third}\nd,{third}\n")
        self.assertEqual(measurement["metrics"]["accuracy"], 0)

    def test_accepts_what_usual_writers_write(self):
        for text in (
            GOOD.replace("\n", "\r\n"),
            GOOD.rstrip("\n"),
            GOOD.replace("0.1", "1e-01"),
            GOOD.replace("d,1,0,0", '"d","1.0","-0.0","0"'),
            GOOD.replace("a,0.5,0.3,0.2", "a,0.5,0.3,0.2004"),
        ):
            self.assertIn("metrics", self.measured(text), text)

    def test_refuses_wrong_ids(self):
        self.refused(GOOD.replace("d,1,0,0\n", ""), "1 of 4 test ids are missing, first 'd'")
        self.refused(GOOD + "e,1,0,0\n", "1 ids are not test ids, first 'e'")
        self.refused(GOOD + "a,1,0,0\n", "line 6 gives the id 'a' a second time")
        self.refused(GOOD.replace("\nd,", "\nD,"), "missing")
        self.refused(GOOD.replace("\nd,", "\n d,"), "missing")

    def test_refuses_wrong_numbers(self):
        for cell in ("nan", "NaN", "inf", "-inf", "Infinity", "1_0", "１", "٣", "0x1", "", " 1", "1 ", "abc", "True", "1,0", "0.5.5", "e5", "1e", "--1",
                     "9" * 400, "0" * 100_000, "1e99999", "[" * 1000, "None", "1e-99999"):
            self.refused(GOOD.replace("d,1,0,0", f"d,{cell},0,0"), "not a plain decimal number|has 5 cells")
        for cell in ("1e400", "2", "-0.1", "1.0000001", "1e9"):
            self.refused(GOOD.replace("d,1,0,0", f"d,{cell},0,0"), "not between 0 and 1")

    def test_refuses_rows_that_do_not_sum_to_one(self):
        self.refused(GOOD.replace("d,1,0,0", "d,1,0.01,0"), "line 5: the probabilities sum to 1.01")
        self.refused(GOOD.replace("d,1,0,0", "d,0,0,0"), "sum to 0")
        self.refused(GOOD.replace("d,1,0,0", "d,1e-400,0,0"), "sum to 0")

    def test_refuses_wrong_columns(self):
        self.refused("", "the header is ''")
        self.refused("\n", "the header is")
        self.refused(GOOD.replace("alive,circulatory", "circulatory,alive"), "expected id,alive,circulatory,other")
        self.refused("\ufeff" + GOOD, "the header is")
        self.refused("," + GOOD, "the header is")
        self.refused(GOOD.replace("d,1,0,0", "d,1,0"), "line 5 has 3 cells, expected 4")
        self.refused(GOOD + "\n", "line 6 has 0 cells")
        self.refused(HEADER, "4 of 4 test ids are missing")

    def test_refuses_what_is_no_csv_text(self):
        self.refused(GOOD.encode("utf-16"), "not UTF-8")
        self.refused(GOOD.encode() + b"\xff", "not UTF-8")
        self.refused(GOOD.encode() + b"\0", "NUL byte")
        self.refused(b"\x80\x04\x95cposix\nsystem\n(S'touch /tmp/x'\ntR.", "not UTF-8")
        self.refused(b"cposix\nsystem\n(S'true'\ntR.", "the header is 'cposix'")
        self.refused(HEADER + '"a,0.5,0.3,0.2\n', "not CSV|cells")
        self.refused(HEADER + '"a"x,0.5,0.3,0.2\n', "not CSV")
        self.refused(HEADER + "x" * 1_000_000 + ",1,0,0\n", "not CSV")
        self.refused("[" * 1_000_000, "not CSV|header")
        self.refused("x" * (4 * 1024 * 1024 + 1), "larger than 4194304 bytes")
        self.refused(HEADER + "\x1b[2J\u202e,1,0,0\n", "missing")

    def test_refuses_what_is_no_regular_file(self):
        path = self.evaluation.artifacts / "submission.csv"
        self.assertRegex(self.evaluation.measure()["invalid"], "cannot be opened: No such file")
        path.symlink_to(self.evaluation.root / "inloop" / "labels.csv")
        self.assertRegex(self.evaluation.measure()["invalid"], "cannot be opened")
        path.unlink()
        path.mkdir()
        self.assertRegex(self.evaluation.measure()["invalid"], "not a regular file")
        path.rmdir()
        os.mkfifo(path)
        self.assertRegex(self.evaluation.measure()["invalid"], "not a regular file")
        path.unlink()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            self.assertRegex(self.evaluation.measure()["invalid"], "cannot be opened|not a regular file")
        path.unlink()
        with path.open("wb") as sparse:
            sparse.truncate(2**40)
        self.assertRegex(self.evaluation.measure()["invalid"], "larger than")


if __name__ == "__main__":
    unittest.main()
