"""Parses the hashes of installed Python archives, as uv and pip report them, by canonical name. No
I/O."""

import re
from typing import Any

ArchiveHashes = dict[str, list[str]]
"""`sha256:` and hex of each archive; the key is the file's path if a lock names a package by file
only."""

_LOCKED = re.compile(r"(?:(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?:==| @ )|(?P<file>/))")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


def canonical_name(name: str) -> str:
    """The normalized name of a package (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked_hashes(lock: str) -> ArchiveHashes:
    """Hashes in a requirements file of `uv pip compile --generate-hashes`: all archives of a
    version."""
    found: ArchiveHashes = {}
    for requirement in lock.replace("\\\n", " ").splitlines():
        locked = _LOCKED.match(requirement)
        hashes = _HASH.findall(requirement)
        if locked is not None and hashes:
            key = canonical_name(locked["name"]) if locked["name"] else requirement.partition(" --hash=")[0].strip()
            found[key] = hashes
    return found


def lock_of_report(report: dict[str, Any]) -> str:
    """The requirements with hashes of what pip's installation report (version 1) says. Entries
    without hash, such as checkouts, are left out."""
    lines = []
    for item in report["install"]:
        hashes = item["download_info"].get("archive_info", {}).get("hashes") or {}
        if "sha256" in hashes:
            package = item["metadata"]
            lines.append(f"{package['name']}=={package['version']} --hash=sha256:{hashes['sha256']}\n")
    return "".join(lines)
