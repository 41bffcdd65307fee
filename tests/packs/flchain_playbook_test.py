"""flchain's researchers: the protocol, real programs, repairs that follow from what a traceback says, and a blind control."""

import ast
import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from packs import ENVIRONMENTS, question, run_json

PLAYBOOK = ENVIRONMENTS / "flchain" / "playbook"
BASELINE = (ENVIRONMENTS / "flchain" / "baseline" / "solution.py").read_text(encoding="utf-8")
sys.dont_write_bytecode = True
sys.path.insert(0, str(PLAYBOOK))

import features  # noqa: E402
import forms  # noqa: E402
import models  # noqa: E402
import moves  # noqa: E402
import recipe as recipes  # noqa: E402
import render  # noqa: E402
import repair  # noqa: E402

sys.path.remove(str(PLAYBOOK))

REFERENCE, CONTROL = ["playbook/researcher.py"], ["playbook/random_moves.py"]


def program_of(answer):
    return answer["files"]["solution.py"]


def some_recipe(seed=1, kinds=("lightgbm", "logistic"), **fields):
    """A recipe with these fields, every task written in its readiest way."""
    drawn = recipes.draw_recipe(random.Random(seed), list(kinds))
    drawn.update(fields)
    drawn["forms"] = {}
    drawn = recipes.settle(drawn, random.Random(seed))
    drawn["forms"] = {task: max(forms.FORMS[task], key=lambda form: forms.FORMS[task][form].weight) for task in drawn["forms"]}
    return drawn


def crash(message, source="model.fit(x, y)", deeper=""):
    output = f'Traceback (most recent call last):\n  File "/trialist/workspace/solution.py", line 9, in <module>\n    {source}\n{deeper}{message}\n'
    return repair.Failure({"status": "crashed", "stage": "train", "reason": "exit code 1", "output": output})


class Researchers(unittest.TestCase):
    def test_same_question_same_answer(self):
        for script in (REFERENCE, CONTROL):
            first = run_json("flchain", script, question("draft", BASELINE, seed=7))
            self.assertEqual(first, run_json("flchain", script, question("draft", BASELINE, seed=7)))
            self.assertNotEqual(program_of(first), program_of(run_json("flchain", script, question("draft", BASELINE, seed=8))))

    def test_answers_differently_when_refused(self):
        for script in (REFERENCE, CONTROL):
            base = program_of(run_json("flchain", script, question("draft", BASELINE, seed=3)))
            for role, extra in (("draft", {}), ("improve", {"status": "keep", "value": 0.4}), ("debug", {"status": "crashed", "failure": {"status": "crashed", "stage": "train", "reason": "", "output": ""}})):
                first = run_json("flchain", script, question(role, base, **extra))
                violation = {"code": "duplicate_candidate", "message": "", "path": ""}
                second = run_json("flchain", script, question(role, base, round=2, violations=[violation], **extra))
                self.assertNotEqual(program_of(first), program_of(second), f"{script} {role}")

    def test_drafts_are_varied_whole_programs(self):
        programs = [program_of(run_json("flchain", REFERENCE, question("draft", BASELINE, seed=seed))) for seed in range(12)]
        self.assertEqual(len(set(programs)), 12)
        for program in programs:
            ast.parse(program)
            self.assertIsNotNone(recipes.read_recipe(program))
        used = {model["kind"] for program in programs for model in recipes.read_recipe(program)["models"]}
        self.assertGreaterEqual(len(used), 4)

    def test_improves_a_program_that_is_not_its_own_by_a_draft(self):
        answer = run_json("flchain", REFERENCE, question("improve", BASELINE, status="keep", value=0.43))
        self.assertTrue(answer["plan"]["hypothesis"].startswith("Draft:"))
        for hostile in ("RECIPE = " + "[" * 5000, "RECIPE = {'models': 5}", "\0", "RECIPE = 1", ""):
            answer = run_json("flchain", REFERENCE, question("improve", hostile, status="keep", value=0.43))
            ast.parse(program_of(answer))

    def test_does_not_repeat_what_memory_holds(self):
        base = render.render(some_recipe(), "t")
        ask = lambda memory: run_json("flchain", REFERENCE, question("improve", base, status="keep", value=0.4, memory=memory))
        first = ask([])["plan"]["hypothesis"]
        memory = [{"trial": "t2", "hypothesis": first, "status": "discard", "value": 0.41}]
        self.assertNotEqual(ask(memory)["plan"]["hypothesis"], first)

    def test_the_control_looks_at_nothing(self):
        base = render.render(some_recipe(), "t")
        memory = [{"trial": "t2", "hypothesis": "Tune: something.", "status": "keep", "value": 0.1}]
        failure = {"status": "crashed", "stage": "train", "reason": "", "output": "TypeError: x"}
        blind = program_of(run_json("flchain", CONTROL, question("improve", base)))
        self.assertEqual(blind, program_of(run_json("flchain", CONTROL, question("improve", base, status="keep", value=0.2, memory=memory))))
        self.assertEqual(blind, program_of(run_json("flchain", CONTROL, question("debug", base, status="crashed", failure=failure))))

    def test_refuses_another_protocol(self):
        asked = {**question("draft", BASELINE), "protocol": "trialist/role@9"}
        with self.assertRaises(subprocess.CalledProcessError):
            run_json("flchain", REFERENCE, asked)


class Moves(unittest.TestCase):
    def test_every_move_applies_somewhere_and_changes_the_recipe(self):
        generator = random.Random(5)
        for name in moves.MOVES:
            changed = 0
            for _ in range(60):
                base = recipes.draw_recipe(generator, generator.sample(list(models.SPACES), generator.choice([1, 2, 3])))
                before = recipes.key(base)
                made = moves.make(name, base, generator)
                self.assertEqual(recipes.key(base), before, f"{name} changed its base")
                if made is not None:
                    self.assertTrue(recipes.is_recipe(made[0]), name)
                    self.assertEqual(moves.family(made[1]), name)
                    self.assertEqual(recipes.read_recipe(render.render(*made)), made[0])
                    changed += recipes.key(made[0]) != before
            if name != "Stop tuning":  # a fresh recipe tunes nothing
                self.assertGreater(changed, 0, name)

    def test_programs_stay_within_their_time(self):
        generator = random.Random(6)
        recipe = recipes.draw_recipe(generator, ["random_forest", "lightgbm"])
        for _ in range(200):
            made = moves.make(generator.choice(list(moves.MOVES)), recipe, generator)
            recipe = made[0] if made else recipe
            self.assertLessEqual(recipes.seconds(recipe), recipes.TARGET_SECONDS + 1)

    def test_features_are_columns_of_the_files(self):
        generator = random.Random(7)
        for _ in range(300):
            feature = features.draw_feature(generator)
            self.assertIsNotNone(features.parse(feature), feature)
            ast.parse(features.feature_source(feature, "file"))


class Repairs(unittest.TestCase):
    def repaired(self, recipe, failure, seed=1):
        result = repair.repair(recipe, failure, random.Random(seed))
        self.assertIsNotNone(result)
        return result

    def way_after(self, task, form, message, source="model.fit(x, y)", **fields):
        recipe = some_recipe(**fields)
        recipe["forms"][task] = form
        changed, sentence = self.repaired(recipe, crash(message, source))
        self.assertNotEqual(changed["forms"].get(task), form, sentence)
        return changed

    def test_a_refused_keyword_is_written_otherwise(self):
        stopped = lambda kind: {**recipes.draw_model(random.Random(1), kind), "early_stopping": True}
        pair = {"models": [stopped("lightgbm"), stopped("xgboost")], "kinds": ("lightgbm", "xgboost")}
        changed = self.way_after("lightgbm_stopping", "fit_argument", "TypeError: LGBMClassifier.fit() got an unexpected keyword argument 'early_stopping_rounds'", **pair)
        self.assertEqual(changed["forms"]["xgboost_stopping"], "constructor")
        changed = self.way_after("xgboost_stopping", "fit_argument", "TypeError: XGBClassifier.fit() got an unexpected keyword argument 'early_stopping_rounds'", **pair)
        self.assertEqual(changed["forms"]["lightgbm_stopping"], "callback")
        self.way_after("one_hot", "sparse", "TypeError: OneHotEncoder.__init__() got an unexpected keyword argument 'sparse'", encoding="one_hot")
        self.way_after("logistic", "multinomial", "TypeError: LogisticRegression.__init__() got an unexpected keyword argument 'multi_class'")

    def test_a_parameter_of_a_refused_value_is_written_otherwise(self):
        self.way_after("logistic", "no_penalty", "sklearn.utils._param_validation.InvalidParameterError: The 'penalty' parameter of LogisticRegression must be a str among {'l1'} or None. Got 'none' instead.")

    def test_a_removed_name_is_written_otherwise(self):
        self.way_after("float_type", "np_float", "AttributeError: module 'numpy' has no attribute 'float'.\n`np.float` was a deprecated alias")

    def test_other_messages_lead_to_their_cause(self):
        self.way_after("folds", "unshuffled", "ValueError: Setting a random_state has no effect since shuffle is False.", combination="weights")
        self.way_after("column_names", "dotted", "KeyError: \"['sample.yr', 'flc.grp'] not in index\"")
        self.way_after("sex_column", "object_dtype", "ValueError: could not convert string to float: 'F'")
        self.way_after("sex_column", "object_dtype", "ValueError: pandas dtypes must be int, float or bool.\nFields with bad pandas dtypes: sex: str")
        self.way_after("xgboost_labels", "names", "ValueError: Invalid classes inferred from unique values of `y`.", kinds=("xgboost",))
        changed, _ = self.repaired(some_recipe(missing="leave"), crash("ValueError: Input X contains NaN.\nLogisticRegression does not accept missing values"))
        self.assertNotEqual(changed["missing"], "leave")
        bins = some_recipe(features=["bins(kappa, 9)"])
        bins["forms"]["bins"] = "plain"
        changed, _ = self.repaired(bins, crash("ValueError: Bin edges must be unique: Index([0.0, 0.0])"))
        self.assertNotEqual(changed["forms"].get("bins"), "plain")
        changed, _ = self.repaired(some_recipe(features=["ratio(age, follow_up_years)", "square(age)"]), crash("ValueError: Input X contains infinity or a value too large for dtype('float64')."))
        self.assertEqual(changed["features"], ["square(age)"])
        changed, _ = self.repaired(some_recipe(kinds=("xgboost", "logistic")), crash("ModuleNotFoundError: No module named 'xgboost'"))
        self.assertEqual([model["kind"] for model in changed["models"]], ["logistic"])

    def test_a_time_limit_leads_to_less_work(self):
        recipe = some_recipe(kinds=("random_forest", "lightgbm"), combination="weights")
        changed, _ = self.repaired(recipe, repair.Failure({"status": "timed_out", "stage": "train", "reason": "", "output": ""}))
        self.assertLess(recipes.seconds(changed), recipes.seconds(recipe))

    def test_a_refused_submission_is_written_otherwise(self):
        recipe = some_recipe()
        recipe["forms"]["submission"] = "with_index"
        failure = repair.Failure({"status": "no_result", "stage": "measure", "reason": "the header is ',id,alive'", "output": ""})
        changed, _ = self.repaired(recipe, failure)
        self.assertNotEqual(changed["forms"]["submission"], "with_index")

    def test_words_in_the_output_are_no_traceback(self):
        recipe = some_recipe(kinds=("lightgbm",), features=[], missing="median")
        failure = repair.Failure({"status": "crashed", "stage": "train", "reason": "exit code 3", "output": "timeout oom killed contains NaN\n"})
        self.assertIsNone(repair.repair(recipe, failure, random.Random(1)))

    def test_patches_a_program_of_somebody_else(self):
        program = "import lightgbm as lgb\nmodel = lgb.LGBMClassifier()\nmodel.fit(x, y, early_stopping_rounds=5)\n"
        output = "Traceback (most recent call last):\n  File \"/w/solution.py\", line 3, in <module>\n    model.fit(x, y, early_stopping_rounds=5)\nTypeError: LGBMClassifier.fit() got an unexpected keyword argument 'early_stopping_rounds'\n"
        answer = run_json("flchain", REFERENCE, question("debug", program, status="crashed", failure={"status": "crashed", "stage": "train", "reason": "", "output": output}))
        self.assertIn("model.fit(x, y)", program_of(answer))


LOCKED = all(importlib.util.find_spec(name) for name in ("lightgbm", "xgboost", "sklearn", "pandas"))


@unittest.skipUnless(LOCKED, "needs the candidate's runtime: run this file with its python")
class FormsInTheLockedRuntime(unittest.TestCase):
    """Which ways of writing the locked versions refuse: a fact about them, checked here and not known to the researcher."""

    REFUSED = {
        ("lightgbm_stopping", "fit_argument"), ("lightgbm_silence", "fit_argument"), ("xgboost_stopping", "fit_argument"), ("xgboost_labels", "names"),
        ("one_hot", "sparse"), ("logistic", "multinomial"), ("logistic", "no_penalty"), ("forest_columns", "auto"), ("hist_rounds", "n_estimators"),
        ("calibrated", "base_estimator"), ("folds", "unshuffled"), ("sex_column", "object_dtype"), ("column_names", "dotted"), ("bins", "plain"),
        ("float_type", "np_float"), ("log_loss", "eps"),
    }

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        generator = random.Random(0)
        for name, extra in (("train", ",outcome"), ("test", "")):
            lines = ["id,age,sex,sample_yr,kappa,lambda,flc_grp,creatinine,mgus,futime" + extra]
            for row in range(240):
                outcome = "," + ("alive", "circulatory", "other")[row % 3] if extra else ""
                creatinine = generator.choice(["", "1.0", "1.1", "0.9"])
                lines.append(f"p{row},{generator.randint(50, 90)},{'FM'[row % 2]},{generator.randint(1995, 2003)},{generator.random():.2f},{generator.random():.2f},{row % 10 + 1},{creatinine},0,{generator.randint(1, 5000)}{outcome}")
            (self.root / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def recipe_with(self, task):
        """A small recipe that has to write this task down."""
        stopped = lambda kind: {**recipes.draw_model(random.Random(1), kind), "early_stopping": True}
        fields = {"features": ["bins(creatinine, 9)"] if task == "bins" else ["sum(sample_yr, follow_up_years)"], "missing": "median", "encoding": "codes", "calibration": None, "target": "direct"}
        kinds = {"logistic": ("logistic",), "forest_columns": ("extra_trees",), "hist_rounds": ("hist_gradient",), "calibrated": ("extra_trees",)}.get(task, (task.split("_")[0],) if task.startswith(("lightgbm", "xgboost")) else ("lightgbm",))
        fields["models"] = [stopped(kinds[0]) if kinds[0] in models.STOPPING_TASKS else {**recipes.draw_model(random.Random(1), kinds[0]), "calibrated": task == "calibrated"}]
        for model in fields["models"]:
            model["settings"].update({name: 20 for name in ("n_estimators", "max_iter") if name in model["settings"]})
        if task == "one_hot":
            fields["encoding"] = "one_hot"
        if task == "folds":
            fields["refit"] = "fold_models"
        if task == "log_loss":
            fields["tuning"] = {"kind": kinds[0], "parameters": ["num_leaves"], "draws": 4}
        recipe = some_recipe(kinds=kinds, **fields)
        self.assertIn(task, recipe["forms"])
        return recipe

    def test_each_way(self):
        for task, ways in forms.FORMS.items():
            for form in ways:
                recipe = self.recipe_with(task)
                recipe["forms"][task] = form
                (self.root / "solution.py").write_text(render.render(recipe, "t"), encoding="utf-8")
                environment = {**os.environ, "TRIALIST_SEED": "1", "TRIALIST_DATA": str(self.root), "TRIALIST_OUTPUT": str(self.root), "OMP_NUM_THREADS": "1"}
                done = subprocess.run([sys.executable, "-B", "solution.py"], cwd=self.root, env=environment, capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode != 0, (task, form) in self.REFUSED, f"{task} {form}: {done.stderr[-800:]}")


if __name__ == "__main__":
    unittest.main()
