"""Changed numbers in documents: refused, or probabilities, whatever other programs would read."""

import numpy as np
import pytest

from support.changed_documents import change_document, documents
from vennforest._validation import InputError
from vennforest.export import from_json


@pytest.mark.filterwarnings("ignore")
def test_no_changed_number_gives_nan():
    cases, rng, read = [one for _, one in documents()], np.random.default_rng(0), 0
    for _ in range(400):
        text, new = cases[rng.integers(len(cases))]
        changed, _ = change_document(rng, text)
        try:
            calibrator = from_json(changed)
        except InputError:
            continue
        read += 1
        try:
            with np.errstate(all="ignore"):
                p = calibrator.predict_proba(new)
        except ValueError:  # a kind of scores that these are not of
            continue
        assert ((p >= 0) & (p <= 1)).all(), changed
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert read > 100
