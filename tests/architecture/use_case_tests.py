"""Which use cases have a unit-test file at the mirrored path, as pure functions over a checkout.

A use case is a class of `src/application` with an async method `execute`. Its test file is
`tests/unit/application/<slice>/test_<module>.py`, and constructs the class. A slice has its reads
in one `queries.py`; each of them may have a test file with the name of its class instead:
`test_get_agent.py` of `GetAgent`.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPEN = Path(__file__).parent / "untested_use_cases.txt"
"""Use cases that have no such file yet, a line each: `slice/module.py ClassName`. The list only
becomes shorter."""

APPLICATION = Path("src/application")
UNIT_TESTS = Path("tests/unit/application")
QUERIES = "queries.py"


@dataclass(frozen=True, slots=True, order=True)
class UseCase:
    """`module` is relative to `src/application`."""

    module: Path
    name: str

    @property
    def test_files(self) -> tuple[Path, ...]:
        """Where its tests may be, relative to the checkout."""
        folder = UNIT_TESTS / self.module.parent
        mirrored = folder / f"test_{self.module.name}"
        return (mirrored, folder / f"test_{_snake(self.name)}.py") if self.module.name == QUERIES else (mirrored,)


def use_cases(root: Path) -> list[UseCase]:
    """Every use case of the checkout, in the order of its files."""
    return [
        UseCase(path.relative_to(root / APPLICATION), node.name)
        for path in sorted((root / APPLICATION).rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and _executes(node)
    ]


def is_tested(root: Path, use_case: UseCase) -> bool:
    """True if a test file at the mirrored path exists and constructs the use case."""
    return any(_constructs(root / path, use_case.name) for path in use_case.test_files)


def untested(root: Path) -> list[str]:
    """The use cases without a test file, as lines of `OPEN`."""
    return [
        f"{use_case.module.as_posix()} {use_case.name}" for use_case in use_cases(root) if not is_tested(root, use_case)
    ]


def _constructs(path: Path, name: str) -> bool:
    if not path.is_file():
        return False
    called = (node.func for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Name) and function.id == name for function in called)


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _executes(node: ast.ClassDef) -> bool:
    if any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
        return False
    return any(isinstance(member, ast.AsyncFunctionDef) and member.name == "execute" for member in node.body)


if __name__ == "__main__":  # python -m tests.architecture.use_case_tests: rewrites the list
    OPEN.write_text("".join(f"{line}\n" for line in untested(ROOT)), encoding="utf-8")
