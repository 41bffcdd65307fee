"""Ways to write one thing down.

Libraries change; what somebody remembers of them may be of an older version. For every task below there are several ways
that are found in real code, each with a weight: how readily it comes to mind. Nothing here says which of them the
installed versions accept. A program that uses one they refuse fails, and its traceback is what leads to another way.
"""

from dice import pick


class Form:
    """One way: how readily it comes to mind, and the names by which a traceback may point to it."""

    def __init__(self, weight, *symbols):
        self.weight = weight
        self.symbols = symbols


FORMS = {
    "lightgbm_stopping": {
        "callback": Form(6, "callbacks"),
        "fit_argument": Form(2, "early_stopping_rounds"),
        "constructor": Form(2, "early_stopping_round"),
    },
    "lightgbm_silence": {"constructor": Form(20, "verbosity"), "fit_argument": Form(1, "verbose")},
    "xgboost_stopping": {"constructor": Form(5, "early_stopping_rounds"), "fit_argument": Form(2, "early_stopping_rounds")},
    "xgboost_labels": {"codes": Form(16), "names": Form(1)},
    "one_hot": {"dummies": Form(4), "sparse_output": Form(5, "sparse_output"), "sparse": Form(1, "sparse")},
    "logistic": {"plain": Form(16), "multinomial": Form(1, "multi_class"), "no_penalty": Form(1, "penalty")},
    "forest_columns": {"sqrt": Form(14), "auto": Form(1, "max_features")},
    "hist_rounds": {"max_iter": Form(14, "max_iter"), "n_estimators": Form(1, "n_estimators")},
    "calibrated": {"estimator": Form(4, "estimator"), "base_estimator": Form(2, "base_estimator")},
    "folds": {"shuffled": Form(24), "unshuffled": Form(1, "random_state")},
    "sex_column": {"comparison": Form(16), "category_codes": Form(8), "object_dtype": Form(1)},
    "column_names": {"file": Form(60), "dotted": Form(1)},
    "bins": {"drop": Form(5), "plain": Form(1), "digitize": Form(2)},
    "float_type": {"float": Form(60), "np_float": Form(1, "float")},
    "log_loss": {"plain": Form(24), "eps": Form(1, "eps")},
    "submission": {"plain": Form(50), "with_index": Form(1), "two_decimals": Form(1)},
}


def draw_form(generator, task, without=()):
    """A way for the task, as it comes to mind; `without` are ways already seen to fail."""
    left = {name: form.weight for name, form in FORMS[task].items() if name not in without}
    return pick(generator, left) if left else None


def tasks_pointed_at(symbol, forms):
    """Tasks whose way in use goes by this name."""
    return [task for task, form in forms.items() if symbol in FORMS[task][form].symbols]
