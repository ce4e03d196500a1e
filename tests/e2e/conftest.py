"""A running service for tests that need nothing special of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.service import Service, serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service of this test's own."""
    with serving(tmp_path / "home") as running:
        yield running
