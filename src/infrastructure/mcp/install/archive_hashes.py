"""Which archives Python packages were installed from, as uv and pip tell it: their hashes by canonical name. Pure."""

import re
from typing import Any

ArchiveHashes = dict[str, list[str]]
"""`sha256:` and hex of each archive; the key is the file's path where a lock knows a package by its file only."""

_LOCKED = re.compile(r"(?:(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?:==| @ )|(?P<file>/))")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


def canonical_name(name: str) -> str:
    """The one spelling of a package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked_hashes(lock: str) -> ArchiveHashes:
    """From a requirements file with hashes, as `uv pip compile --generate-hashes` writes it: all archives of a version."""
    found: ArchiveHashes = {}
    for requirement in lock.replace("\\\n", " ").splitlines():
        locked = _LOCKED.match(requirement)
        hashes = _HASH.findall(requirement)
        if locked is not None and hashes:
            key = canonical_name(locked["name"]) if locked["name"] else requirement.partition(" --hash=")[0].strip()
            found[key] = hashes
    return found


def reported_hashes(report: dict[str, Any]) -> ArchiveHashes:
    """From pip's installation report (version 1): the archive that was taken. What has none, such as a checkout, is left
    out."""
    found: ArchiveHashes = {}
    for item in report["install"]:
        hashes = item["download_info"].get("archive_info", {}).get("hashes") or {}
        if "sha256" in hashes:
            found[canonical_name(item["metadata"]["name"])] = [f"sha256:{hashes['sha256']}"]
    return found
