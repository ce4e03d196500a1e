"""The commands of all other pages work as they stand there."""

from pathlib import Path

import pytest

from tests.documents.pages import runnable
from tests.documents.shell import run_page


@pytest.mark.requirement("U3")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", runnable(None))
def test_the_commands_of_a_page_work_as_written(page: str, readers_directory: Path) -> None:
    run_page(page, readers_directory)
