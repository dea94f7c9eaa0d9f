"""Shapes and types in signatures are checked while the tests run."""

import gc
from collections.abc import Iterator

import jaxtyping
import pytest
from browsing import CHROMIUM
from playwright.sync_api import Browser, sync_playwright

gc.set_threshold(100_000, 20, 20)  # few cycles are made: to look for them all the time costs 5% of the time
jaxtyping.install_import_hook("algoscope", "beartype.beartype")


@pytest.fixture
def as_users_run_it():
    """Without the checks of the tests, which would catch a bad argument before the code that users rely on does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()
