"""Codes of errors in words."""

import pytest

from interfaces.console.error_words import error_word


@pytest.mark.requirement("U6")
def test_a_code_is_said_in_words_and_an_unknown_one_without_its_underscores() -> None:
    assert error_word("model_auth") == "the provider refused the key"
    assert error_word("brand_new") == "brand new"
