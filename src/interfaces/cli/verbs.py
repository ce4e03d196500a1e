"""Verbs of other programs, and the verb of this command line that does the same."""

import re
from collections.abc import Collection

_SAME = (
    ("create", "add", "apply", "new", "register", "set", "put"),
    ("delete", "remove", "revoke", "rm", "del", "drop"),
    ("list", "ls", "all"),
    ("show", "get", "describe", "info", "status", "cat", "view"),
    ("update", "edit", "patch", "change", "set"),
)
_UNKNOWN = re.compile(r"No such command '([^']*)'\.?")


def verb_meant(message: str, commands: Collection[str]) -> str:
    """` Did you mean 'apply'?` for a message of typer that says only that there is no such command;
    else empty."""
    unknown = _UNKNOWN.fullmatch(message)
    if unknown is None:
        return ""
    for verbs in _SAME:
        found = [verb for verb in verbs if verb in commands]
        if unknown[1] in verbs and found:
            return f" Did you mean {found[0]!r}?"
    return ""
