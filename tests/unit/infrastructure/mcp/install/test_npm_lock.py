"""Locks of npm packages, of which only versions, hashes and addresses of registries are kept."""

import json
from pathlib import Path

import pytest

from infrastructure.mcp.install.npm_lock import NpmLock, UnusableLockError

pytestmark = pytest.mark.requirement("S1")
HASH = "sha512-" + "A" * 86 + "=="
REAL = Path(__file__).parents[4] / "node" / "package-lock.json"


def a_lock(**entry: object) -> str:
    """A lock of one package, with changes to its entry."""
    own = {"version": "1.0.0", "resolved": "https://registry.example/@own/x/-/x-1.0.0.tgz", "integrity": HASH}
    packages = {"": {"dependencies": {"x": "1.0.0"}}, "node_modules/x": {**own, **entry}}
    return json.dumps({"lockfileVersion": 3, "packages": packages, "name": "ins_1"})


def test_a_lock_is_written_again_from_what_it_says() -> None:
    lock = NpmLock.parsed(a_lock(dependencies={"y": "npm:@own/y@^1.0 || 2.x"}, scripts={"install": "evil"}))
    assert lock.wanted == {"x": "1.0.0"}
    assert NpmLock.parsed(lock.text).text == lock.text
    assert "evil" not in lock.text
    assert json.loads(lock.text)["packages"]["node_modules/x"]["dependencies"] == {"y": "npm:@own/y@^1.0 || 2.x"}


def test_all_entries_of_a_real_lock_are_kept() -> None:
    stored = json.loads(REAL.read_text())
    stored["packages"][""]["dependencies"] = {"axe-core": "4.14.1"}
    kept = json.loads(NpmLock.parsed(json.dumps(stored)).text)["packages"]
    for place, entry in stored["packages"].items():
        if place:
            assert kept[place] == {
                name: value for name, value in entry.items() if name not in ("license", "workspaces")
            }


@pytest.mark.parametrize(
    "change",
    [
        {"resolved": "file:../../secret.tgz"},
        {"resolved": "git+ssh://git@evil.example/x.git#0123"},
        {"resolved": "http://registry.example/x.tgz"},
        {"resolved": "https://me:password@registry.example/x.tgz"},
        {"resolved": "https://registry.example/x.tgz?token=secret"},
        {"resolved": "../x", "link": True},
        {"link": True},
        {"integrity": None},
        {"integrity": "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA="},
        {"version": "git+https://evil.example/x.git"},
        {"version": "${HOME}"},
        {"dependencies": {"y": "git+https://evil.example/y.git"}},
        {"dependencies": {"y": "https://evil.example/y.tgz"}},
        {"dependencies": {"y": "file:/home/operator/.npmrc"}},
        {"dependencies": {"y": "evil/repository"}},
        {"optionalDependencies": {"y": "github:evil/y"}},
        {"peerDependencies": {"../y": "1.0.0"}},
    ],
    ids=str,
)
def test_any_other_source_is_refused(change: dict[str, object]) -> None:
    NpmLock.parsed(a_lock())
    with pytest.raises(UnusableLockError):
        NpmLock.parsed(a_lock(**change))


@pytest.mark.parametrize(
    "packages",
    [
        {},
        {"": {}},
        {"": {"dependencies": {}}},
        {"": {"dependencies": {"x": "git+https://evil.example/x.git"}}},
        {"": {"dependencies": {"x": "1.0.0"}}, "../x": {"version": "1.0.0", "integrity": HASH}},
        {"": {"dependencies": {"x": "1.0.0"}}, "node_modules/../../x": {"version": "1.0.0", "integrity": HASH}},
        {"": {"dependencies": {"x": "1.0.0"}}, "folder": {"version": "1.0.0", "integrity": HASH}},
    ],
    ids=str,
)
def test_other_places_and_roots_are_refused(packages: dict[str, object]) -> None:
    with pytest.raises(UnusableLockError):
        NpmLock.parsed(json.dumps({"lockfileVersion": 3, "packages": packages}))


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{}", '{"lockfileVersion": 1, "packages": {}}', "-r /etc/passwd"])
def test_what_is_no_lock_is_refused(text: str) -> None:
    with pytest.raises(UnusableLockError):
        NpmLock.parsed(text)
