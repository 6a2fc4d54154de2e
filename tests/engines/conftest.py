"""A Spark session for all tests of one process."""

import pytest

from support.systems import local_spark


@pytest.fixture(scope="session")
def spark():
    """Two workers in this machine."""
    made = local_spark()
    yield made
    made.stop()
