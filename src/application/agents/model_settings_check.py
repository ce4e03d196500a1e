"""Violations of model settings that a model does not take."""

from collections.abc import Sequence

from domain.errors import Violation


def settings_violations(model: str, not_taken: Sequence[str]) -> list[Violation]:
    return [
        Violation(path=f"model_settings.{name}", message=f"the model {model!r} does not take it") for name in not_taken
    ]
