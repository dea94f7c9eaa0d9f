"""Shapes and types in signatures are checked while the tests run."""

import jaxtyping
import pytest

jaxtyping.install_import_hook("algoscope", "beartype.beartype")


@pytest.fixture
def as_users_run_it():
    """Without the checks of the tests, which would catch a bad argument before the code that users rely on does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
