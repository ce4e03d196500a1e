"""The choice of the group that something belongs to. Used by the forms of agents, servers and
workflows."""

from collections.abc import Iterable


def team_choices(names: Iterable[str], chosen: str | None) -> list[tuple[str, str]]:
    """Values with their titles. What is chosen stays a choice, also once its group is gone."""
    every = dict.fromkeys((*names, *([chosen] if chosen else [])))
    return [("", "the organization"), *((name, name) for name in every)]
