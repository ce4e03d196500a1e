"""What a migration may do to a database that code of the revision before uses: expand it. A
revision that does more says `contract = True`, and then that code does not work with it
(`WORKS_WITH`). See ADR 0085."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

EXPANDING = frozenset({"add_column", "create_table", "create_index", "execute", "get_bind", "f"})
"""What of Alembic's operations an expand step calls. `create_index` is not unique, a new column can
be left out."""
_CONTRACTING_SQL = re.compile(
    r"\b(DROP|RENAME|TRUNCATE|SET\s+NOT\s+NULL|ALTER\s+COLUMN|ADD\s+CONSTRAINT)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A revision's file, read without running it."""

    revision: str
    down_revision: str | None
    is_contract: bool
    contractions: tuple[str, ...]

    @staticmethod
    def read(path: Path) -> "Migration":
        """The file's constants, and what its upgrade does that code from before may not survive."""
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            target.id: statement.value.value
            for statement in tree.body
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        down = constants["down_revision"]
        return Migration(
            revision=str(constants["revision"]),
            down_revision=None if down is None else str(down),
            is_contract=constants.get("contract") is True,
            contractions=tuple(contractions(tree)),
        )


def chain(folder: Path) -> list[Migration]:
    """All revisions, oldest first."""
    found = {one.down_revision: one for one in map(Migration.read, folder.glob("[0-9]*.py"))}
    ordered: list[Migration] = []
    while (following := found.get(ordered[-1].revision if ordered else None)) is not None:
        ordered.append(following)
    return ordered


def working_code(migrations: Sequence[Migration], first: str) -> tuple[str, ...]:
    """The revisions whose code works with the newest schema: from the last contract step on, not
    before `first`."""
    working: list[str] = []
    for migration in migrations:
        if migration.is_contract or migration.revision == first:
            working.clear()
        working.append(migration.revision)
    return tuple(working)


def contractions(tree: ast.Module) -> Iterator[str]:
    """What the file does outside of `downgrade` that is no expansion, with its line."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "downgrade":
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield from (f"line {node.lineno}: {why}" for why in _contracting_call(node))
            elif isinstance(node, ast.Constant) and (found := _CONTRACTING_SQL.search(str(node.value))):
                yield f"line {node.lineno}: {found[0]}"


def _contracting_call(call: ast.Call) -> Iterator[str]:
    function = call.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "op"):
        return
    if function.attr not in EXPANDING:
        yield f"op.{function.attr}"
    if function.attr == "create_index" and _is(call, "unique", value=True):
        yield "a unique index"
    for column in call.args[1:] if function.attr == "add_column" else []:
        if isinstance(column, ast.Call) and _is(column, "nullable", value=False) and not _has(column, "server_default"):
            yield "a column that must be given"


def _is(call: ast.Call, name: str, *, value: bool) -> bool:
    return any(
        word.arg == name and isinstance(word.value, ast.Constant) and word.value.value is value
        for word in call.keywords
    )


def _has(call: ast.Call, name: str) -> bool:
    return any(word.arg == name for word in call.keywords)
