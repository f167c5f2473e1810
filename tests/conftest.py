"""Fixtures: databases in memory, and settings of their own for every test run."""

from collections.abc import Iterator

import hypothesis
import pytest

import sparseeinsum as se

hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci")


@pytest.fixture(autouse=True, scope="session")
def own_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Constants calibrated on this machine must not change what tests see; compiled kernels may stay cached."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="module")
def shared_db() -> Iterator[se.Database]:
    """A database that the tests of a module share, each replacing the tensors that it needs."""
    with se.connect() as database:
        yield database


@pytest.fixture
def db() -> Iterator[se.Database]:
    """An empty database in memory."""
    with se.connect() as database:
        yield database
