"""What a command opens by naming it, and which parts of a runtime are opened."""

from pathlib import Path

import pytest

from infrastructure.confinement.grants import Protected, runtime_of


@pytest.fixture
def protected(tmp_path: Path) -> Protected:
    for path in ("user/.ssh", "user/code", "project/.dragoman", "project/src", "tools/lib"):
        (tmp_path / path).mkdir(parents=True)
    for path in ("user/.ssh/id", "user/code/server.py", "user/note", "project/.dragoman/admin.key", "tools/server.py"):
        (tmp_path / path).touch()
    (tmp_path / "node" / "dist").mkdir(parents=True)
    (tmp_path / "node" / "node_modules" / "server").mkdir(parents=True)
    for path in ("node/package.json", "node/dist/index.js", "node/node_modules/server/index.js"):
        (tmp_path / path).touch()
    return Protected([tmp_path / "project" / ".dragoman"], user_home=tmp_path / "user")


@pytest.mark.requirement("S1")
@pytest.mark.parametrize(
    ("named", "opened"),
    [
        ("tools/server.py", ["tools"]),
        ("tools", ["tools"]),
        ("node/dist/index.js", ["node"]),
        ("node/node_modules/server/index.js", ["node"]),
        ("user/code/server.py", ["user/code"]),
        ("user/note", ["user/note"]),
        ("user", []),
        ("user/.ssh", []),
        ("user/.ssh/id", []),
        ("project/.dragoman", []),
        ("project/.dragoman/admin.key", []),
        ("project", ["project/src"]),
        ("missing", []),
        ("", ["project/src", "tools", "node"]),
    ],
)
def test_a_command_opens_what_it_names_but_nothing_private(
    named: str, opened: list[str], protected: Protected, tmp_path: Path
) -> None:
    found = {str(path.relative_to(tmp_path)) for path in protected.named(named, tmp_path)}
    assert found <= {*opened} if named == "" else found == {*opened}


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("named", ["/", "/etc", "/etc/passwd", "/proc/1", "/root", "/tmp", "/var"])
def test_directories_of_the_system_are_not_opened_by_naming_them(named: str, protected: Protected) -> None:
    assert not {Path("/"), Path("/etc"), Path("/proc"), Path(named)} & {*protected.named(named, Path("/"))}


def test_a_file_is_opened_alone_where_its_directory_is_not_wanted(protected: Protected, tmp_path: Path) -> None:
    assert protected.named("tools/server.py", tmp_path, beside=False) == (tmp_path / "tools" / "server.py",)


def test_a_runtime_is_opened_through_its_links_and_first_line(tmp_path: Path) -> None:
    for name in ("env", "base"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "lib" / "python3.11").mkdir(parents=True)
    (tmp_path / "base" / "secret").touch()
    (tmp_path / "base" / "bin" / "python").touch(mode=0o700)
    (tmp_path / "env" / "bin" / "python").symlink_to(tmp_path / "base" / "bin" / "python")
    script = tmp_path / "server"
    script.write_text(f"#!{tmp_path}/env/bin/python\n")
    script.chmod(0o700)
    found = runtime_of(str(script), "")
    assert {script, *(tmp_path / name / part for name in ("env", "base") for part in ("bin", "lib"))} <= {*found}
    assert tmp_path / "base" / "secret" not in found
    assert tmp_path / "base" not in found
