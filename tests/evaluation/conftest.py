"""Model servers on loopback."""

import pytest

from tests.lm.conftest import Remote


@pytest.fixture
def make_remote():
    remotes = []

    def make():
        remotes.append(Remote())
        return remotes[-1]

    yield make
    for remote in remotes:
        remote.close()
