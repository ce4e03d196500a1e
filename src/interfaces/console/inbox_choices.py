"""What is decided many at a time in the inbox: calls and tools that are approved or denied, and
questions that are answered alike."""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from domain.approvals.approval import Approval
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import ApprovalId
from domain.json_value import JsonValue
from domain.mcp.pinning import PinnedTool
from interfaces.console.human_answers import Question
from interfaces.console.inbox import InboxItem
from interfaces.console.json_text import JsonTextError, json_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AlikeQuestions:
    """Waiting questions of one node of a workflow, which offer the same answers. `key` names the
    node; `keys` are those of the items."""

    key: str
    about: str
    choices: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]


def alike(principal: Principal, items: Iterable[InboxItem]) -> tuple[AlikeQuestions, ...]:
    """Questions with answers to choose from that the caller may answer, of nodes that ask in at
    least two runs."""
    found: dict[str, list[InboxItem]] = {}
    for item in items:
        if isinstance(item.subject, Question) and item.subject.kind == "choice" and may_answer(principal, item):
            found.setdefault(group_of(item), []).append(item)
    return tuple(
        AlikeQuestions(
            key=key,
            about=each[0].about,
            choices=each[0].subject.choices,
            keys=tuple(item.key for item in each if isinstance(item.subject, Question)),
        )
        for key, each in found.items()
        if len(each) > 1
        and isinstance(each[0].subject, Question)
        and len({item.subject.choices for item in each if isinstance(item.subject, Question)}) == 1
    )


def may_answer(principal: Principal, item: InboxItem) -> bool:
    """Whether the question of a workflow run is the caller's to answer."""
    run = item.workflow_run
    own = run is not None and run.requested_by == principal.key_id and principal.may(Permission.RUNS_START)
    return own or principal.may(Permission.RUNS_CONTROL)


def group_of(item: InboxItem) -> str:
    """The node that asks, over all runs of its workflow."""
    assert item.workflow_run is not None
    assert isinstance(item.subject, Question)
    return f"{item.workflow_run.workflow_id}:{item.subject.node_id}"


def choosable(
    principal: Principal,
    items: Iterable[InboxItem],
    why_not: Container[ApprovalId],
    questions: Iterable[AlikeQuestions],
) -> dict[str, str]:
    """The items that may be chosen, by key, with the value of their box: that of a tool has the
    digest of the definition that is shown."""
    answerable = {key for group in questions for key in group.keys}
    values: dict[str, str] = {}
    for item in items:
        subject = item.subject
        if isinstance(subject, Approval):
            if principal.may(Permission.APPROVALS_DECIDE) and subject.id not in why_not:
                values[item.key] = item.key
        elif isinstance(subject, PinnedTool):
            if principal.may(Permission.SERVERS_MANAGE):
                values[item.key] = f"{item.key}#{subject.definition.digest}"
        elif item.key in answerable:
            values[item.key] = item.key
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenTool:
    """A tool in quarantine as its box names it."""

    server: str
    tool: str
    digest: str

    @classmethod
    def of(cls, value: str) -> "ChosenTool":
        key, _, digest = value.rpartition("#")
        _, _, rest = key.partition(":")
        server, _, tool = rest.partition(":")
        return cls(server=server, tool=tool, digest=digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAnswer:
    """One answer to all chosen questions of a node. `text` is the answer as the form has it."""

    group: str
    text: str
    answer: JsonValue

    @classmethod
    def of(cls, value: str) -> "SharedAnswer":
        """From the value of the list of answers. Raises INVALID."""
        workflow, _, rest = value.partition(":")
        node, _, text = rest.partition(":")
        try:
            return cls(group=f"{workflow}:{node}", text=text, answer=json_of(text))
        except JsonTextError:
            fault = Violation(path="answer", message="must be chosen")
            raise invalid("answer_invalid", "Choose an answer first.", fault) from None

    def fits(self, item: InboxItem) -> bool:
        """Whether it is an answer that this question offers."""
        question = item.subject
        if not isinstance(question, Question) or group_of(item) != self.group:
            return False
        return self.text in (value for value, _ in question.choices)
