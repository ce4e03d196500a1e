"""Locks of Python packages: versions with the hashes of their archives, as uv and pip report them.
No text of theirs is kept: each line is parsed, and written again from what it says. No I/O."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

ArchiveHashes = Mapping[str, list[str]]
"""`sha256:` and hex of each archive by canonical name, or by the path of a file that was
installed."""

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_MARKER = r"(?: ?(?:[a-z_.]++|[<>=!~]++|'[A-Za-z0-9._+ -]*'|\"[A-Za-z0-9._+ -]*\"|[()]))+"
_PINNED = re.compile(rf"(?P<name>{_NAME})==(?P<version>[0-9][0-9A-Za-z.!+_-]*)(?: ?; ?(?P<marker>{_MARKER}))?")
_HASHES = re.compile(r"(?: +--hash=sha256:[0-9a-f]{64})+")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class UnusableLockError(ValueError):
    """A lock holds something else than versions with hashes. The message is safe to show."""


class _Archive(msgspec.Struct):
    hashes: dict[str, str] | None = None


class _Download(msgspec.Struct):
    archive_info: _Archive | None = None


class _Metadata(msgspec.Struct):
    name: str
    version: str


class _Installed(msgspec.Struct):
    download_info: _Download
    metadata: _Metadata


class PipReport(msgspec.Struct):
    """pip's installation report (version 1)."""

    install: list[_Installed]


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonLock:
    """`text` is a requirements file for uv and pip."""

    text: str
    hashes: ArchiveHashes

    @classmethod
    def parsed(cls, text: str, *, file: str | None = None) -> Self:
        """From a requirements file. `file` is the one file that it may name by its path. Raises
        UnusableLockError for a line without hashes, with options, addresses or variables."""
        lines: list[str] = []
        hashes: dict[str, list[str]] = {}
        for line in text.replace("\\\n", " ").split("\n"):
            if line.strip() and not line.startswith("#"):
                key, written, found = _parsed(line.strip(), file)
                lines.append(" \\\n    ".join((written, *(f"--hash={each}" for each in found))) + "\n")
                hashes[key] = found
        if not lines:
            raise UnusableLockError("The lock of the packages is empty.")
        return cls(text="".join(lines), hashes=hashes)

    @classmethod
    def reported(cls, report: PipReport) -> Self:
        """From pip's report. Entries without hash, such as checkouts, are left out. Raises
        UnusableLockError."""
        lines = []
        for item in report.install:
            archive = item.download_info.archive_info
            found = (archive.hashes or {}).get("sha256") if archive is not None else None
            if found is not None:
                lines.append(f"{item.metadata.name}=={item.metadata.version} --hash=sha256:{found}\n")
        return cls.parsed("".join(lines)) if lines else cls(text="", hashes={})


def canonical_name(name: str) -> str:
    """The normalized name of a package (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _parsed(line: str, file: str | None) -> tuple[str, str, list[str]]:
    """Key, requirement and hashes of a line."""
    wanted, separator, rest = line.partition(" --hash=")
    wanted = wanted.strip()
    pinned = _PINNED.fullmatch(wanted)
    if _HASHES.fullmatch(separator + rest):
        hashes = _HASH.findall(rest)
        if pinned is not None:
            marker = f" ; {pinned['marker'].strip()}" if pinned["marker"] else ""
            return canonical_name(pinned["name"]), f"{pinned['name']}=={pinned['version']}{marker}", hashes
        if file is not None and (wanted == file or wanted.endswith(f" @ {Path(file).as_uri()}")):
            return file, file, hashes
    raise UnusableLockError("The lock of the packages holds something else than versions with hashes.")
