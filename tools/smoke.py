"""What an installation must be able to do; run where nothing but the installed archive is in sight.

Without the extras, the command line must say in one sentence what to install; with them
(``--all``), it must report, fit and predict; with vennforest-experiments (``--experiments``), it
must list data sets and run a paper.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path


def run(*arguments, name="vennforest"):
    """Return the finished process of a command with these arguments."""
    command = Path(sysconfig.get_path("scripts")) / name
    return subprocess.run([str(command), *arguments], capture_output=True, text=True, check=False)


def check(condition, what):
    """End with a message unless ``condition`` holds."""
    if not condition:
        raise SystemExit(f"smoke test failed: {what}")
    print(f"  {what}")


def library():
    """Calibrate a forest and read its bounds."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier

    import vennforest
    from vennforest import CalibratedClassifier, VennAbers

    where = Path(vennforest.__file__).resolve()
    check(Path(sysconfig.get_path("purelib")).resolve() in where.parents, "installed, not a tree")
    check(where.with_name("py.typed").is_file(), "types are marked")
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(60, random_state=0)
    model = CalibratedClassifier(forest, random_state=0).fit(X[::2], y[::2])
    p = model.predict_proba(X[1::2])
    m = model.predict_multiprobability(X[1::2])
    check(np.allclose(p.sum(axis=1), 1), "probabilities sum to 1")
    check(bool(((m.lower <= p) & (p <= m.upper)).all()), "bounds hold them")
    loss = -np.log(p[np.arange(len(p)), y[1::2]]).mean()
    check(loss < 0.2, f"log loss {loss:.3f}")
    m = VennAbers("log").fit([0.1, 0.4, 0.5, 0.9], [0, 1, 0, 1]).predict_multiprobability([0.45])
    # Four scores and 0.45 labelled 0 or 1: the isotonic fit at 0.45 is 1/3 and 2/3.
    check(np.allclose([m.p0[0], m.p1[0]], [1 / 3, 2 / 3]), "Venn–Abers as by hand")


def commands(extras):
    """Use the command line, or read what it says without the extras."""
    if not extras:
        if importlib.util.find_spec("typer") is None:
            finished = run("--help")
            check(finished.returncode == 2, "the command line exits with 2 without its extras")
            check("vennforest[all]" in finished.stderr, "and says what to install")
            check("Traceback" not in finished.stderr, "without a traceback")
        return
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder, "iris.csv"), Path(folder, "model.skops")
        from sklearn.datasets import load_iris

        load_iris(as_frame=True).frame.to_csv(table, index=False)
        page, predictions = Path(folder, "report.html"), Path(folder, "predictions.parquet")
        for arguments, made in [
            (("report", "--example", "wine", "--trees", "30", "-o", str(page)), page),
            (("fit", str(table), "--target", "target", "-o", str(model)), model),
            (("predict", str(model), str(table), "-o", str(predictions)), predictions),
        ]:
            finished = run(*arguments)
            check(
                finished.returncode == 0 and made.stat().st_size > 0, f"vennforest {arguments[0]}"
            )


def experiments():
    """List data sets and run a paper."""
    check("adult" in run("datasets", name="vennforest-experiments").stdout, "list data sets")
    with tempfile.TemporaryDirectory() as folder:
        rows = [f"{i % 7},{i % 5},{i % 3},{int(i % 7 + i % 5 > 5)}" for i in range(60)]
        Path(folder, "haberman.csv").write_text("\n".join(["a,b,c,target", *rows]))
        small = ("--datasets", "haber", "--repeats", "1", "--folds", "2", "--set", "trees=5")
        arguments = ("reproduce", "johansson2018", "--data-dir", folder, *small)
        finished = run(*arguments, name="vennforest-experiments")
        check(finished.returncode == 0 and "haber" in finished.stdout, "reproduce a paper")


if __name__ == "__main__":
    library()
    if "--experiments" in sys.argv[1:]:
        experiments()
    else:
        commands("--all" in sys.argv[1:])
