"""What formulas say of rows together and one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from vennforest.calibrators import PooledCalibration, TemperatureScaling, VectorScaling
from vennforest.calibrators.formula import FormulaFunction, Score
from vennforest.calibrators.softmax import SoftmaxMap


@pytest.mark.parametrize("k", [3, 26, 40])
@pytest.mark.parametrize("kind", ["probability", "logit"])
def test_rows_together_are_what_the_formula_says_of_each(k, kind):
    rng = np.random.default_rng(k)
    scores = rng.dirichlet(np.full(k, 0.3), 120)
    codes = np.array([rng.choice(k, p=row) for row in scores])
    given = scores if kind == "probability" else np.log(scores + 1e-9) * 2 + 1
    for model in (TemperatureScaling(), VectorScaling(), SoftmaxMap("full"), PooledCalibration()):
        model.fit(given, codes, classes=range(k))
        p = model.predict_proba(given)
        expected = FormulaFunction(model._formula(Score()))(given)
        assert_allclose(p, expected, rtol=1e-10, atol=1e-14)
        one_by_one = np.concatenate([model.predict_proba(row[None]) for row in given])
        np.testing.assert_array_equal(p, one_by_one)
