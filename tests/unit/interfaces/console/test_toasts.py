"""What is said once something was changed: each action of the console has a sentence, or shows its outcome itself."""

import pytest

from interfaces.console.app import console_routes
from interfaces.console.toasts import ELSEWHERE, ON_THE_PAGE, SENTENCES

pytestmark = pytest.mark.requirement("U6")


def test_each_action_says_that_it_was_done_or_shows_it_or_changes_nothing() -> None:
    actions = {
        path.replace(":str", "") for route in console_routes() if "POST" in route.http_methods for path in route.paths
    }
    assert SENTENCES.keys() | ON_THE_PAGE | ELSEWHERE == actions
    assert len(SENTENCES) + len(ON_THE_PAGE) + len(ELSEWHERE) == len(actions)


def test_sentences_are_of_letters_that_a_header_may_have() -> None:
    assert [each for each in SENTENCES.values() if not each.isascii() or not each.endswith(".")] == []
