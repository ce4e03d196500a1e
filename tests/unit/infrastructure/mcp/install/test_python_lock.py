"""Locks of Python packages, of which only versions and hashes are kept."""

import msgspec
import pytest

from infrastructure.mcp.install.python_lock import PipReport, PythonLock, UnusableLockError

pytestmark = pytest.mark.requirement("S1")
ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64


def test_a_lock_is_written_again_from_what_it_says() -> None:
    lock = PythonLock.parsed(
        f"Tiny.Helper==1.0 \\\n    --hash={ONE} \\\n    --hash={TWO}\n# a remark\n"
        f"other==1!2.0rc1+cpu ; python_version >= '3.11' and sys_platform == \"linux\" --hash={TWO}\n"
    )
    assert lock.hashes == {"tiny-helper": [ONE, TWO], "other": [TWO]}
    assert lock.text == (
        f"Tiny.Helper==1.0 \\\n    --hash={ONE} \\\n    --hash={TWO}\n"
        f"other==1!2.0rc1+cpu ; python_version >= '3.11' and sys_platform == \"linux\" \\\n    --hash={TWO}\n"
    )
    assert PythonLock.parsed(lock.text) == lock


@pytest.mark.parametrize(
    "line",
    [
        "--extra-index-url https://evil.example/${PIP_INDEX_URL}",
        "--index-url=https://evil.example",
        "-r /home/operator/.netrc",
        "-e .",
        "./evil-1.0.tar.gz",
        f"/srv/evil-1.0.tar.gz --hash={ONE}",
        f"evil @ https://evil.example/evil.whl --hash={ONE}",
        f"evil==1.0;https://evil.example --hash={ONE}",
        f"evil==${{PIP_INDEX_URL}} --hash={ONE}",
        f"evil==1.0 ; python_version == '${{PIP_INDEX_URL}}' --hash={ONE}",
        f"evil==1.0 --hash={ONE} --extra-index-url https://evil.example",
        f"evil==1.0 --extra-index-url https://evil.example --hash={ONE}",
        f"evil==1.0 --config-settings=x=y --hash={ONE}",
        f"evil>=1.0 --hash={ONE}",
        "evil==1.0",
        "evil==1.0 --hash=md5:0123",
        f"evil==1.0 --hash={ONE}0",
        f"evil==1.0 ; {'a' * 5_000}$ --hash={ONE}",
        "the text of a key",
    ],
)
def test_any_other_line_is_refused(line: str) -> None:
    with pytest.raises(UnusableLockError):
        PythonLock.parsed(f"good==1.0 --hash={ONE}\n{line}\n")


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n"])
def test_an_empty_lock_is_refused(text: str) -> None:
    with pytest.raises(UnusableLockError):
        PythonLock.parsed(text)


@pytest.mark.parametrize("written", ["/srv/own-1.0-py3-none-any.whl", "own @ file:///srv/own-1.0-py3-none-any.whl"])
def test_the_file_that_is_installed_is_the_only_one(written: str) -> None:
    file = "/srv/own-1.0-py3-none-any.whl"
    assert PythonLock.parsed(f"{written} --hash={ONE}\n", file=file).hashes == {file: [ONE]}
    with pytest.raises(UnusableLockError):
        PythonLock.parsed(f"{written} --hash={ONE}\n", file="/srv/other.whl")


def a_report(name: str, version: str = "1.0") -> PipReport:
    archive = {"archive_info": {"hashes": {"sha256": "1" * 64}}}
    items = [
        {"download_info": archive, "metadata": {"name": name, "version": version, "description": "long"}},
        {"download_info": {"vcs_info": {}}, "metadata": {"name": "checkout", "version": "1.0"}},
    ]
    return msgspec.convert({"version": "1", "install": items}, PipReport)


def test_a_report_of_pip_gives_the_packages_with_hashes() -> None:
    assert PythonLock.reported(a_report("own")).hashes == {"own": [ONE]}


@pytest.mark.parametrize("name", ["own\n--extra-index-url https://evil.example\nx", "own @ https://evil.example", ""])
def test_a_report_with_other_names_is_refused(name: str) -> None:
    with pytest.raises(UnusableLockError):
        PythonLock.reported(a_report(name))
