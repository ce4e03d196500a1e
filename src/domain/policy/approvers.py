"""Approvers: the people and groups who may decide the approvals of a rule."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from domain.errors import Violation, invalid
from domain.json_value import JsonObject
from domain.policy.acting_person import ActingPerson

MAX_APPROVERS = 100
MAX_GROUP_NAME = 200
_ID = re.compile(r"(usr|key)_[A-Za-z0-9_]{1,60}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvers:
    """Those who may decide: `people` by the ids of users or API keys, and members of `groups`, by
    name. At least one."""

    people: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wrong = [*people_violations("approvers", self.people, self.groups)]
        if not 0 < len(self.people) + len(self.groups) <= MAX_APPROVERS:
            wrong.append(Violation(path="approvers", message=f"must name 1 to {MAX_APPROVERS} people and groups"))
        if wrong:
            raise invalid("tool_policy_invalid", "The tool policy is not valid.", *wrong)

    def include(self, person: ActingPerson) -> bool:
        """Whether the person may decide."""
        return person.id in self.people or not person.groups.isdisjoint(self.groups)

    def as_json(self) -> JsonObject:
        """Only what is stated."""
        stated: JsonObject = {}
        if self.people:
            stated["people"] = [*self.people]
        if self.groups:
            stated["groups"] = [*self.groups]
        return stated


def people_violations(path: str, people: tuple[str, ...], groups: tuple[str, ...]) -> Iterator[Violation]:
    """Ids and names in `path` that can be none."""
    for index, each in enumerate(people):
        if not _ID.fullmatch(each):
            yield Violation(path=f"{path}.people.{index}", message="is no id of a user or an API key")
    for index, each in enumerate(groups):
        if not 0 < len(each) <= MAX_GROUP_NAME or each != each.strip() or not each.isprintable():
            yield Violation(path=f"{path}.groups.{index}", message="is no name of a group")


def both(one: tuple[Approvers, ...], other: tuple[Approvers, ...]) -> tuple[Approvers, ...]:
    """Who decides must be in each."""
    return (*one, *(each for each in other if each not in one))
