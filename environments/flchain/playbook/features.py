"""Derived columns. A feature is written as one call, `ratio(kappa, lambda)`, so that a recipe stays readable."""

import itertools
import re

#: Numeric columns by unit; adding or dividing makes most sense between columns of one unit.
UNITS = {
    "years": ["age", "sample_yr", "follow_up_years"],
    "concentration": ["kappa", "lambda", "creatinine"],
    "rank": ["flc_grp"],
    "flag": ["male", "mgus"],
}
COLUMNS = [column for members in UNITS.values() for column in members]
CONTINUOUS = UNITS["years"] + UNITS["concentration"]

#: How a column of the files, or a plain reading of one, is written in a program.
SOURCES = {
    "male": '(frame["sex"] == "M").astype(int)',
    "follow_up_years": '(frame["futime"] / 365.25)',
}

PAIRED = {"sum": "{a} + {b}", "difference": "{a} - {b}", "ratio": "{a} / {b}", "product": "{a} * {b}"}
SINGLE = {
    "log": "np.log({a})",
    "square": "{a} ** 2",
    "rank": "{a}.rank(pct=True)",
    "bins": "quantile_bins({a}, {bins})",
    "missing": "{a}.isna().astype(int)",
}
CALL = re.compile(r"(\w+)\(([\w, ]+)\)")


def parse(feature):
    """`ratio(kappa, lambda)` → ("ratio", ["kappa", "lambda"]); None if it is no such call."""
    match = CALL.fullmatch(feature)
    if match is None:
        return None
    arguments = [argument.strip() for argument in match[2].split(",")]
    return (match[1], arguments) if match[1] in PAIRED or match[1] in SINGLE else None


def draw_feature(generator):
    """One derived column, drawn by what its columns measure."""
    if generator.random() < 0.35:
        return draw_single(generator)
    if generator.random() < 0.6:
        unit = generator.choice(["years", "concentration"])
        return paired(generator.choice(["sum", "difference", "ratio"]), *generator.sample(UNITS[unit], 2))
    a, b = generator.sample(COLUMNS, 2)
    # Flags and ranks may be zero, so that nothing is divided by them.
    operation = generator.choice(["product", "ratio"]) if b in CONTINUOUS else "product"
    return paired(operation, a, b)


def paired(operation, a, b):
    """One way to write what is the same both ways round, or the same but for its sign."""
    if operation != "ratio" and COLUMNS.index(a) > COLUMNS.index(b):
        a, b = b, a
    return f"{operation}({a}, {b})"


def pairs_of(unit):
    """Every sum, difference and ratio of two columns of one unit."""
    pairs = itertools.combinations(UNITS[unit], 2)
    return [f"{operation}({a}, {b})" for a, b in pairs for operation in ("sum", "difference", "ratio") if (operation, b) != ("ratio", "follow_up_years")]


def wiser(generator, feature):
    """Follow-up may be 0 days; whoever read that mostly does not divide by it."""
    operation, arguments = parse(feature)
    if operation == "ratio" and arguments[1] == "follow_up_years" and generator.random() < 0.9:
        return f"ratio({arguments[1]}, {arguments[0]})"
    return feature


def draw_single(generator):
    operation = generator.choice(["log", "square", "rank", "bins", "missing"])
    if operation == "missing":
        return "missing(creatinine)"
    if operation == "log":
        return f"log({generator.choice(UNITS['concentration'])})"
    column = generator.choice(CONTINUOUS)
    return f"bins({column}, {generator.randint(4, 12)})" if operation == "bins" else f"{operation}({column})"


def draw_features(generator, low, high):
    """Several different derived columns."""
    wanted, drawn = generator.randint(low, high), []
    while len(drawn) < wanted:
        feature = wiser(generator, draw_feature(generator))
        if feature not in drawn:
            drawn.append(feature)
    return drawn


def column_source(column, spelling):
    """A numeric column as an expression over `frame`. Documentation of the study writes dots in names."""
    if column in SOURCES:
        return SOURCES[column]
    if spelling == "dotted":
        column = {"sample_yr": "sample.yr", "flc_grp": "flc.grp"}.get(column, column)
    return f'frame["{column}"]'


def feature_name(feature):
    """A column name without characters that a library might refuse."""
    operation, arguments = parse(feature)
    return "_".join([operation, *arguments])


def feature_source(feature, spelling):
    """The feature as an expression over `frame`."""
    operation, arguments = parse(feature)
    if operation in PAIRED:
        a, b = (column_source(column, spelling) for column in arguments)
        return PAIRED[operation].format(a=a, b=b)
    return SINGLE[operation].format(a=column_source(arguments[0], spelling), bins=arguments[-1])


def columns_of(feature):
    """The columns that a feature reads, for repairs that have to drop it."""
    return [argument for argument in parse(feature)[1] if argument in COLUMNS]
