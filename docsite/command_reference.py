"""The reference of all commands, from the tree that the command line is made of."""

import re
import shlex
from collections.abc import Iterator

import typer.main
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from interfaces.cli.app import build_app

_INTRODUCTION = """# Commands

Every command of `dragoman`, as `--help` tells it. [The command line](../guides/cli.md) says which service they talk to, what they print
and how they exit.
"""
_BEFORE_EXAMPLES = re.compile(r"^Examples?: ")


def command_page() -> str:
    """The page, in Markdown: a section for each group, a part of it for each command."""
    root = typer.main.get_command(build_app())
    assert isinstance(root, TyperGroup)
    return "\n".join([_INTRODUCTION, *_group(root, "dragoman", level=2)])


def _group(group: TyperGroup, path: str, *, level: int) -> Iterator[str]:
    for name, command in group.commands.items():
        heading = f"{'#' * level} {path} {name}"
        if isinstance(command, TyperGroup):
            yield f"{heading}\n\n{_sentences(command.help)}\n"
            yield from _group(command, f"{path} {name}", level=level + 1)
        elif isinstance(command, TyperCommand) and not command.hidden:
            yield "\n".join([f"{heading}\n", *_command(command, f"{path} {name}")])


def _command(command: TyperCommand, path: str) -> Iterator[str]:
    arguments = [part for part in command.params if isinstance(part, TyperArgument)]
    options = [part for part in command.params if isinstance(part, TyperOption) and not part.hidden]
    usage = " ".join([path, *(["[OPTIONS]"] if options else []), *map(_place, arguments)])
    yield f"{_sentences(command.help)}\n"
    yield f"`{usage}`\n"
    if arguments or options:
        yield "| | |\n|---|---|"
        yield from (
            f"| `{_in_table(_metavar(argument))}` | {_cell(argument.help, argument.required)} |"
            for argument in arguments
        )
        yield from (
            f"| `{_in_table(_spelling(option))}` | {_cell(option.help, option.required)} |" for option in options
        )
        yield ""
    if command.epilog:
        yield "\n".join(["```text", *_examples(command.epilog), "```", ""])


def _place(argument: TyperArgument) -> str:
    many = f"{_metavar(argument)}{'…' if argument.nargs == -1 else ''}"
    return many if argument.required else f"[{many}]"


def _metavar(parameter: TyperArgument | TyperOption) -> str:
    return parameter.metavar or (parameter.name or "").upper()


def _spelling(option: TyperOption) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {_metavar(option)}"


def _cell(text: str | None, required: bool) -> str:
    escaped = _in_table(_sentences(text))
    return f"{escaped} Required." if required else escaped


def _in_table(text: str) -> str:
    return text.replace("|", "\\|")


def _sentences(text: str | None) -> str:
    """Help texts are plain: what Markdown would take for markup is escaped."""
    return re.sub(r"([*_<\[])", r"\\\1", " ".join((text or "").split()))


def _examples(epilog: str) -> list[str]:
    """The commands of an epilog; several stand with semicolons between, as in a shell."""
    commands: list[list[str]] = [[]]
    lexer = shlex.shlex(_BEFORE_EXAMPLES.sub("", epilog), posix=False, punctuation_chars=False)
    lexer.whitespace_split = True
    for word in lexer:
        ends = word.endswith(";")
        commands[-1].append(word.removesuffix(";"))
        if ends:
            commands.append([])
    return [" ".join(words) for words in commands if words]
