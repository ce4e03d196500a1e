"""`dragoman run TEXT` as a shortcut of `dragoman run start TEXT`, which takes no command for a
message."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperGroup

from interfaces.cli.failures import BadUsage
from interfaces.cli.kinds import kind_of

_SHORTCUT = "interfaces.cli.run_group.shortcut"
_VERBS = ("start", "list", "export", "show", "cancel", "resume", "retry")
_MEANT = {
    "ls": "list", "ps": "list", "all": "list", "get": "show", "status": "show", "logs": "show", "events": "show",
    "stop": "cancel", "kill": "cancel", "abort": "cancel", "delete": "cancel", "rm": "cancel",
    "new": "start", "create": "start", "continue": "resume", "approve": "resume", "again": "retry", "rerun": "retry",
}  # fmt: skip
"""Commands of other programs, and what they are here."""


class RunGroup(TyperGroup):
    """Puts `start` in front of what is not a command of the group."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            if not ctx.resilient_parsing:
                refuse_commands(args[:1])
            ctx.meta[_SHORTCUT] = True
            args = ["start", *args]
        return super().parse_args(ctx, args)


def require_message(context: typer.Context, text: str) -> None:
    """Refuse a message of the shortcut that is a command, or nearly one. Raises BadUsage."""
    if context.meta.get(_SHORTCUT):
        refuse_commands([text])


def refuse_commands(texts: Iterable[str]) -> None:
    """Raises BadUsage for a single word that is a command of runs, nearly one, or the id of
    something."""
    for text in texts:
        word = text.strip().lower()
        near = _MEANT.get(word) or next(iter(get_close_matches(word, _VERBS, n=1, cutoff=0.75)), None)
        if near is not None:
            said = f"{text!r} is a command" if word == near else f"{text!r} is not a command; did you mean {near!r}"
            raise BadUsage(
                f"{said}: `dragoman run {near}`. To send {text!r} to an agent: dragoman run start {text} --agent NAME"
            )
        kind = kind_of(word)
        if kind is not None and kind.shown_by is not None and len(word) > len(kind.prefix) + 1:
            raise BadUsage(f"{text} is the id of {kind.one}: `dragoman {kind.shown_by} {text}`.")
