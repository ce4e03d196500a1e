"""What no tracked file may hold: registry addresses, a machine's paths, credentials, traces of how
a text was made.

The patterns are put together from pieces so that this file passes its own check.
"""

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

REGISTRY_HOSTS = (
    "py" + "pi.org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com/package",
    "yarn" + "pkg.com",
)
SIGNATURES = ("co-authored" + "-by", "generated " + "with", "claude " + "code")

FORBIDDEN: Mapping[str, re.Pattern[str]] = {
    "a package registry's address": re.compile("|".join(map(re.escape, REGISTRY_HOSTS)), re.IGNORECASE),
    "a path of one machine": re.compile(r"(?<![\w.~$*})/-])/(?:work|root|tmp|opt)/\w"),
    "an authoring tool's signature": re.compile("|".join(map(re.escape, SIGNATURES)), re.IGNORECASE),
    "a merge that nobody finished": re.compile(r"^(?:<{7} |>{7} )", re.MULTILINE),
    "a private key": re.compile("-----BEGIN [A-Z ]*" + "PRIVATE KEY-----"),
    "a credential": re.compile(r"\b(?:sk-(?:ant|proj)-|gh[pousr]_|glpat-|xox[abp]-|AKIA)[A-Za-z0-9_-]{16,}"),
}

LOCKS = ("requirements/", "tests/node/package-lock.json")
FORBIDDEN_IN_LOCKS: Mapping[str, re.Pattern[str]] = {
    "an address": re.compile(r"://"),
    "a source of packages": re.compile(r"--(?:extra-)?index-url|--find-links|--trusted-host|\"resolved\""),
}


def tracked_files(root: Path) -> list[Path]:
    """Paths relative to `root` of what git tracks and the tree still has; works whoever owns the
    checkout."""
    command = ["git", "-c", f"safe.directory={root}", "-C", str(root), "ls-files", "-z"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return [Path(name) for name in names if name and (root / name).is_file()]


def offences(root: Path, paths: Iterable[Path]) -> list[str]:
    """`path:line: what it holds` for every line of a text file that matches a forbidden pattern."""
    return [
        f"{path.as_posix()}:{number}: {what}"
        for path in paths
        for text in [_text(root / path)]
        for what, pattern in _patterns_for(path)
        if pattern.search(text)  # few texts are looked at line by line
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def _patterns_for(path: Path) -> list[tuple[str, re.Pattern[str]]]:
    is_lock = path.as_posix().startswith(LOCKS)
    return [*FORBIDDEN.items(), *(FORBIDDEN_IN_LOCKS.items() if is_lock else ())]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
