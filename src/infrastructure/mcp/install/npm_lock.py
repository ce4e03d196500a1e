"""Locks of npm packages, written again from their versions, addresses of registries and hashes. No
I/O."""

from typing import Annotated, Self

import msgspec
from msgspec import Meta, Struct

_NAME = r"(?:@[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9_~-][A-Za-z0-9._~-]*"
_Name = Annotated[str, Meta(pattern=rf"^{_NAME}\Z", max_length=214)]
_Place = Annotated[str, Meta(pattern=rf"^node_modules/{_NAME}(?:/node_modules/{_NAME})*\Z", max_length=4096)]
_Version = Annotated[str, Meta(pattern=r"^[0-9A-Za-z.+-]+\Z", max_length=256)]
_Range = Annotated[str, Meta(pattern=rf"^(?:npm:{_NAME}@)?[0-9A-Za-z.^~<>=|*+ -]*\Z", max_length=1000)]
"""Versions of a registry's package, possibly of another name; no address, path or repository."""
_Address = Annotated[str, Meta(pattern=r"^https://[A-Za-z0-9.-]+(?::[0-9]+)?/[A-Za-z0-9@._~%/+!-]*\Z", max_length=2000)]
_Hash = r"sha(?:256|384|512)-[A-Za-z0-9+/]+={0,2}"
_Integrity = Annotated[str, Meta(pattern=rf"^{_Hash}(?: {_Hash})*\Z", max_length=1000)]
_Ranges = dict[_Name, _Range]


class UnusableLockError(ValueError):
    """A lock holds something else than packages of registries. The message is safe to show."""


class _Root(Struct):
    dependencies: Annotated[dict[_Name, _Version], Meta(min_length=1, max_length=1)]


class _Optional(Struct):
    optional: bool = False


class _Package(Struct, omit_defaults=True, rename="camel"):
    """An entry: what npm needs to install it as it was. Its address is npm's own if there is
    none."""

    version: _Version
    integrity: _Integrity | None = None
    resolved: _Address | None = None
    name: _Name | None = None
    in_bundle: bool = False
    link: bool = False
    optional: bool = False
    dev: bool = False
    dev_optional: bool = False
    peer: bool = False
    dependencies: _Ranges = {}
    optional_dependencies: _Ranges = {}
    peer_dependencies: _Ranges = {}
    peer_dependencies_meta: dict[_Name, _Optional] = {}
    has_install_script: bool = False
    bundle_dependencies: list[_Name] | bool = False
    engines: dict[str, str] | list[str] = {}
    os: list[str] = []
    cpu: list[str] = []
    libc: list[str] = []
    bin: dict[str, str] | str = {}


class NpmLock:
    """The one package that was asked for, and all packages by their places."""

    def __init__(self, *, wanted: dict[str, str], packages: dict[str, _Package]) -> None:
        self.wanted = wanted
        self._packages = packages

    @classmethod
    def parsed(cls, text: bytes | str) -> Self:
        """From a package-lock.json. Raises UnusableLockError for packages without hash, and those
        of files, links, repositories, other addresses than `https`, and addresses with credentials
        or queries."""
        try:
            stored = msgspec.json.decode(text, type=_Stored)
            wanted = msgspec.convert(stored.packages.pop("", None), _Root).dependencies
            packages = msgspec.convert(stored.packages, dict[_Place, _Package])
        except (msgspec.MsgspecError, RecursionError, ValueError) as exc:
            raise _unusable() from exc
        if any(entry.link or (entry.integrity is None and not entry.in_bundle) for entry in packages.values()):
            raise _unusable()
        return cls(wanted=wanted, packages=packages)

    @property
    def text(self) -> str:
        """A package-lock.json."""
        packages = {"": {"dependencies": self.wanted}, **self._packages}
        return msgspec.json.encode({"lockfileVersion": 3, "requires": True, "packages": packages}).decode()


class _Stored(Struct, rename="camel"):
    packages: dict[str, object]
    lockfile_version: Annotated[int, Meta(ge=2, le=3)]


def _unusable() -> UnusableLockError:
    return UnusableLockError("The lock of the packages holds something else than packages of registries with hashes.")
