"""No tracked file holds what the project never contains, and each pattern does match what it is
there for."""

import subprocess
from pathlib import Path

import pytest

from tests.architecture.published_files import REGISTRY_HOSTS, SIGNATURES, offences, tracked_files

ROOT = Path(__file__).parents[2]
MACHINE_PATHS = ["/" + folder + "/project" for folder in ("work", "root", "tmp", "opt")]


def offences_of(root: Path, name: str, text: str) -> list[str]:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return offences(root, [Path(name)])


def test_no_tracked_file_holds_what_the_project_never_contains() -> None:
    found = offences(ROOT, tracked_files(ROOT))
    assert not found, "\n".join(found)


def test_the_tracked_files_are_those_git_lists_and_the_tree_has(tmp_path: Path) -> None:
    for name in ("kept.txt", "gone.txt", "new.txt"):
        (tmp_path / name).touch()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "kept.txt", "gone.txt"], check=True)
    (tmp_path / "gone.txt").unlink()
    assert tracked_files(tmp_path) == [Path("kept.txt")]


@pytest.mark.parametrize(
    "line",
    [
        *(f"url = https://{host}/simple" for host in REGISTRY_HOSTS),
        *(f"cd {path}" for path in MACHINE_PATHS),
        *(f'PATH = "{path}"' for path in MACHINE_PATHS),
        *(signature.title() for signature in SIGNATURES),
        "<" * 7 + " HEAD",
        "-----BEGIN RSA " + "PRIVATE KEY-----",
        "key = 'sk-" + "ant-" + "a" * 20 + "'",
        "token: gh" + "p_" + "a" * 36,
    ],
)
def test_a_forbidden_text_is_reported_with_its_line(line: str, tmp_path: Path) -> None:
    (offence,) = offences_of(tmp_path, "docs/guide.md", f"first\n{line}\nlast\n")
    assert offence.startswith("docs/guide.md:2: ")


@pytest.mark.parametrize(
    "line",
    [
        "https://example.org/work/project",
        "src/infrastructure/work/queue.py",
        "GET /v1/root/x",
        "tmp_path / 'x'",
        "$HOME/tmp/x",
        "uv pip compile --no-emit-index-url",
    ],
)
def test_an_ordinary_text_is_not_reported(line: str, tmp_path: Path) -> None:
    assert offences_of(tmp_path, "docs/guide.md", line) == []


@pytest.mark.parametrize("name", ["requirements/runtime.txt", "tests/node/package-lock.json"])
@pytest.mark.parametrize("line", ["--index-url mirror", "--find-links wheels", '"resolved": "x"', "x @ file://x"])
def test_a_lock_names_no_source_of_packages(name: str, line: str, tmp_path: Path) -> None:
    assert offences_of(tmp_path, name, line) != []


def test_a_file_that_is_not_text_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "image.png").write_bytes(b"\x89PNG\xff\xfe")
    assert offences(tmp_path, [Path("image.png")]) == []
