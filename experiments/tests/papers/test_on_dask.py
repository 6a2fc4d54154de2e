"""An experiment's folds, run on a cluster."""

import joblib
import numpy as np
import pytest

from vennforest_experiments.papers.johansson2018.experiment import Johansson2018
from vennforest_experiments.papers.protocol.run import run_experiment

distributed = pytest.importorskip("distributed")


@pytest.mark.slow
def test_joblib_runs_an_experiment_on_the_cluster(tmp_path):
    X = np.random.default_rng(73).normal(size=(60, 3)).round(2)
    rows = "".join(f"{a},{b},{c},{int(a + b > 0)}\n" for a, b, c in X)
    (tmp_path / "haberman.csv").write_text("a,b,c,target\n" + rows)
    experiment = Johansson2018(data_dir=str(tmp_path), repeats=1, folds=2, trees=5)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as two,
        distributed.Client(two),
        joblib.parallel_config(backend="dask"),
    ):
        assert joblib.effective_n_jobs() == 2
        got = run_experiment(experiment, ["haber"])
    assert len(got) == 2
    assert got == run_experiment(experiment, ["haber"])
