"""Call everything public while packages are missing: ``python without_packages.py PACKAGE …``.

Prints, as JSON, what each call raised: ``{"vennforest.update": null or "ImportError: …"}``.
"""

import contextlib
import importlib.abc
import importlib.util
import io
import json
import os
import sys
import tempfile
import types
import warnings
from pathlib import Path


class Missing(importlib.abc.MetaPathFinder):
    """A finder by which packages are not found, wherever they are installed."""

    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def outcome(call):
    """Return None, or the error that the call raised."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def command(*arguments):
    """Run a command; raise what it prints as an error."""
    from vennforest.__main__ import main

    if arguments[0] in ("predict", "show", "watch") and not arguments[1].exists():
        return  # without skops no model was written
    stderr, old = io.StringIO(), sys.argv
    sys.argv = ["vennforest", *map(str, arguments)]
    try:
        with contextlib.redirect_stderr(stderr):
            code = main()
    finally:
        sys.argv = old
    error = stderr.getvalue().rstrip().rpartition("\n")[2]  # after notes and progress
    if code == 2 and error.startswith("Error: "):
        raise ImportError(error)
    if code != 0:
        raise RuntimeError(f"exit code {code}: {stderr.getvalue()}")


def calls(folder):
    """Return the calls by name; what they share is made by numpy and scikit-learn alone."""
    import numpy as np
    from sklearn.calibration import FrozenEstimator
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import vennforest as vf
    from vennforest import decisions, export, metrics, performance, persistence, plots, validation

    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(2, 160, 3))
    y = (X[:, 0] + rng.normal(size=160) > 0).astype(int)
    p = np.clip(rng.beta(2, 2, 160), 0.01, 0.99)
    grade = np.where(p > 0.5, "A", "B")
    linear = LogisticRegression().fit(X, y)
    model = vf.CalibratedClassifier(FrozenEstimator(linear)).fit(X, y)
    forest = vf.CalibratedClassifier(
        vf.MixedForestClassifier(40, random_state=0), random_state=0
    ).fit(X, y)
    scaled = vf.CalibratedClassifier(
        FrozenEstimator(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y))
    ).fit(X, y)
    calibrator = vf.PlattScaling().fit(p, y)
    bounds = model.predict_multiprobability(X)

    rows = "\n".join(f"{a},{b},{s},{k}" for (a, b, _), s, k in zip(X, p, y, strict=True))
    table, workbook = folder / "table.csv", folder / "table.xlsx"
    table.write_text(f"a,b,s,k\n{rows}\n")
    new_table = folder / "new.csv"
    np.savetxt(new_table, new, delimiter=",", header="a,b,s", comments="")
    workbook.write_bytes(b"PK\x03\x04")  # not read without openpyxl
    with contextlib.suppress(ImportError):
        import openpyxl

        book = openpyxl.Workbook()
        for row in [["a", "k"], *zip(p.tolist(), y.tolist(), strict=True)]:
            book.active.append(row)
        book.save(workbook)
    document = folder / "calibrator.json"
    document.write_text(export.to_json(calibrator))
    words = folder / "words.csv"
    words.write_text("a,k\n" + "".join(f"word {i},{i % 2}\n" for i in range(60)))
    saved = folder / "model.skops"

    def evaluation():
        from vennforest import report

        return report.check(y, p)

    def comparable_summary():
        from vennforest.metrics import Estimates
        from vennforest.validation.comparison import comparable

        return {"comparable": comparable(Estimates(y, p))}

    def evaluate():
        from vennforest import report

        report.evaluate(X, y, methods=["none", "platt"], n_folds=2, n_trees=10)

    def engine(name, function):
        engine = importlib.import_module(f"vennforest.engines.{name}")
        frame = types.SimpleNamespace(to_delayed=list, columns=["a", "s", "k"])
        if name == "dask" and importlib.util.find_spec("pandas"):
            with contextlib.suppress(ImportError):
                import dask.dataframe
                import pandas

                data = pandas.DataFrame(X, columns=list("abc")).assign(s=p, k=y)
                frame = dask.dataframe.from_pandas(data, npartitions=2)
        if function == "calibrate":
            return engine.calibrate(frame, score="s", target="k")
        if function == "predict":
            return engine.predict(frame, calibrator, columns=["s"])
        own_forest = vf.CalibratedClassifier(vf.MixedForestClassifier(20))
        return engine.fit(own_forest, frame, target="k")

    def batch():
        predictors = importlib.import_module("vennforest.batch")
        import pyarrow

        schema = pyarrow.schema([("s", pyarrow.float64())])
        predictors.BatchPredictor(calibrator, schema, columns="s")

    def tables():
        from vennforest.tables import table_pipeline
        from vennforest.tables.open import TableFile

        frame = TableFile(words).read()
        table_pipeline(LogisticRegression()).fit(frame[["a"]], frame["k"])

    def explained_monitor():
        monitor = vf.Monitor(forest).fit()
        monitor.update(new, y)
        monitor.explain()

    def saved_and_loaded():
        persistence.save(model, saved)
        persistence.load(saved)
        persistence.read_header(saved)

    named = {
        "update": lambda: vf.update(p, y),
        "update of groups": lambda: vf.update(p, y, groups=np.arange(160) // 4),
        "update with X": lambda: vf.update(p, y, X=X),
        "audit": lambda: vf.audit(model, X, y),
        "explain": lambda: vf.explain(forest, X[:2]),
        "estimate_performance": lambda: vf.estimate_performance(model, new),
        "estimate_performance of another population": lambda: vf.estimate_performance(
            forest, new, shift="covariate", reference=X
        ),
        "PerformanceEstimate.table": lambda: performance.estimate_performance(model, new).table(),
        "Multiprobability.to_frame": bounds.to_frame,
        "ConfidenceIntervals.to_frame": lambda: model.predict_confidence(X).to_frame(),
        "save, load": saved_and_loaded,
        "grades": lambda: validation.grades(y, p, grade),
        "population_stability": lambda: validation.population_stability(grade, {"A": 1, "B": 0}),
        "population_stability of rows": lambda: validation.population_stability(grade, grade),
        "segments": lambda: validation.segments(X, y, p, n_draws=9),
        "internal_external": lambda: validation.internal_external(y, p, np.arange(160) % 3),
        "compare": lambda: validation.compare(*[comparable_summary()] * 2),
        "threshold_for": lambda: decisions.threshold_for(model, recall=0.8),
        "CostMatrix.read": lambda: decisions.CostMatrix.read([[0, 1], [5, 0]], np.arange(2)),
        "Monitor": lambda: vf.Monitor().fit(p, y).update(p, y),
        "Monitor of a model": lambda: vf.Monitor(forest).fit().update(new, y),
        "Monitor.explain": explained_monitor,
        "ReliabilityDisplay": lambda: plots.ReliabilityDisplay.from_predictions(y, p),
        "ReliabilityDisplay of a model": lambda: plots.ReliabilityDisplay.from_estimator(
            model, X, y
        ),
        "IntervalDisplay": lambda: plots.IntervalDisplay.from_estimator(model, X, y),
        "to_json, from_json": lambda: export.from_json(export.to_json(calibrator)),
        "to_sql": lambda: export.to_sql(calibrator),
        "to_sql in another dialect": lambda: export.to_sql(calibrator, dialect="postgres"),
        "to_onnx": lambda: export.to_onnx(calibrator),
        "to_onnx of a forest": lambda: export.to_onnx(forest),
        "to_onnx of another classifier": lambda: export.to_onnx(scaled, X),
        "report.check": evaluation,
        "report.evaluate": evaluate,
        "Evaluation.to_html": lambda: evaluation().to_html(folder / "page.html"),
        "Evaluation.to_figures": lambda: evaluation().to_figures(folder / "figures"),
        "Evaluation.summary": lambda: evaluation().summary(),
        "batch": batch,
        "tables": tables,
        "MixedForestClassifier": lambda: vf.MixedForestClassifier(5).fit(X, y).predict(X),
    }
    named |= {
        f"metrics.{name}": measure_call(metrics, name, y, p, bounds)
        for name in measures_of(metrics)
    }
    for name in ("dask", "spark"):
        for function in ("calibrate", "predict", "fit"):
            named[f"engines.{name}.{function}"] = lambda n=name, f=function: engine(n, f)
    for line in (
        ("--help",),
        ("fit", table, "--target", "k", "--trees", 20, "-o", saved),
        ("fit", words, "--target", "k", "--trees", 20, "-o", folder / "words.skops"),
        ("fit", table, "--target", "k", "--estimator", "lightgbm", "-o", folder / "l.skops"),
        ("fit", table, "--target", "k", "--estimator", "xgboost", "-o", folder / "x.skops"),
        ("fit", table, "--target", "k", "--estimator", "catboost", "-o", folder / "c.skops"),
        ("fit", workbook, "--target", "k", "--trees", 20, "-o", folder / "workbook.skops"),
        ("predict", saved, table, "-o", folder / "predictions.csv"),
        ("show", saved),
        ("calibrate", table, "--score", "s", "--target", "k", "-o", folder / "new.json"),
        ("apply", document, table, "--score", "s", "-o", folder / "applied.csv"),
        ("sql", document, "--score", "s"),
        ("sql", document, "--score", "s", "--dialect", "postgres"),
        ("check", table, "--probability", "s", "--target", "k", "-o", folder / "check.html"),
        (
            "report",
            table,
            "--target",
            "k",
            "--estimator",
            "extra-trees",
            "--trees",
            10,
            "-o",
            folder / "report.html",
        ),
        ("watch", saved, new_table, "-o", folder / "watch.html"),
    ):
        shown = [part.name if isinstance(part, Path) else str(part) for part in line]
        named[" ".join(["vennforest", *shown])] = lambda line=line: command(*line)
    return named


def measures_of(metrics):
    """Return the names of the public functions of the module, whatever is added to it."""
    return [name for name in metrics.__all__ if name.islower()]


def measure_call(metrics, name, y, p, bounds):
    """Return a call of a measure with the arguments that it needs."""
    arguments = {
        "auc_difference": (y, p, p[::-1]),
        "decision_curve": (y, p, [0.2, 0.5]),
        "interval_curve": (y, bounds),
        "threshold_table": (y, p, [0.5]),
    }
    return lambda: getattr(metrics, name)(*arguments.get(name, (y, p)))


def main(packages):
    if packages:
        sys.meta_path.insert(0, Missing(packages))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        named = calls(Path(folder))
        outcomes = {name: outcome(call) for name, call in named.items()}
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main(frozenset(sys.argv[1:]))
