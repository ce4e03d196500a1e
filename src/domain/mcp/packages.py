"""Parsing of `package` and `version`, which name the package that an npm or python server is
installed from."""

import re
from dataclasses import dataclass

from domain.errors import Violation

_NPM_NAME = re.compile(r"(@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*")
_NPM_VERSION = re.compile(r"[\^~]?[0-9A-Za-z][0-9A-Za-z.+_-]*")
_PYTHON_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS = rf"\[{_PYTHON_NAME}(?:,{_PYTHON_NAME})*\]"
_CLAUSE = r"(?:~=|==|!=|<=|>=|<|>)[0-9A-Za-z.!+*_-]+"
_REQUIREMENT = re.compile(rf"(?P<name>{_PYTHON_NAME})(?:{_EXTRAS})?(?P<clauses>{_CLAUSE}(?:,{_CLAUSE})*)?")
_PYTHON_VERSION = re.compile(r"[0-9][0-9A-Za-z.!+*_-]*")
_NPM_FILES = (".tgz", ".tar.gz")
_PYTHON_FILES = (".whl", ".tar.gz", ".zip")


class WrongPackageError(ValueError):
    """`package` or `version` cannot be used; `violation` says which and why."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.violation = Violation(path=path, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class NpmPackage:
    """A package of the npm registry, or a local `.tgz` file (`name` is None). `specifier` is npm's
    argument."""

    name: str | None
    specifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonPackage:
    """A package of the Python registry, or a local wheel or sdist (`name` is None). `requirements`
    are pip's arguments: the package first, then additional requirements."""

    name: str | None
    requirements: tuple[str, ...]


def npm_package(package: str, version: str | None) -> NpmPackage:
    """Parse `@scope/name`, `name@1.2.3` or the absolute path of a `.tgz`. Raises
    WrongPackageError."""
    if is_file(package):
        _check_file(package, version, _NPM_FILES)
        return NpmPackage(name=None, specifier=package)
    # A leading @ belongs to the scope.
    scope, at, rest = package[:1], "", package[1:]
    rest, at, inline = rest.partition("@")
    name = scope + rest
    if not _NPM_NAME.fullmatch(name):
        raise WrongPackageError("package", "must be the name of an npm package, or the absolute path of a .tgz file")
    if at and version is not None:
        raise WrongPackageError("version", "is named in package already")
    wanted = inline if at else version
    if wanted is not None and not _NPM_VERSION.fullmatch(wanted):
        raise WrongPackageError("package" if at else "version", "must name one version of the package, such as 1.2.3")
    return NpmPackage(name=name, specifier=name if wanted is None else f"{name}@{wanted}")


def python_package(package: str, version: str | None) -> PythonPackage:
    """Parse `name`, `name[extra]==1.2` or the absolute path of a wheel or sdist. Further
    requirements may follow after spaces (`mcp-server-sqlite mcp<2`). Raises WrongPackageError."""
    first, *others = package.split() or [""]
    for other in others:
        if not _REQUIREMENT.fullmatch(other):
            raise WrongPackageError("package", "must hold requirements with spaces only between them, such as mcp<2")
    if is_file(first):
        _check_file(first, version, _PYTHON_FILES)
        return PythonPackage(name=None, requirements=(first, *others))
    requirement = _REQUIREMENT.fullmatch(first)
    if requirement is None:
        raise WrongPackageError(
            "package", "must begin with the name of a Python package, or the absolute path of a wheel or sdist"
        )
    if version is not None:
        if requirement["clauses"]:
            raise WrongPackageError("version", "is named in package already")
        if not _PYTHON_VERSION.fullmatch(version):
            raise WrongPackageError("version", "must be a version of the package, such as 1.2.3")
        first = f"{first}=={version}"
    return PythonPackage(name=requirement["name"], requirements=(first, *others))


def is_file(package: str) -> bool:
    """Whether `package` is a path instead of the name of a registry's package."""
    return package.startswith(("/", ".", "~"))


def _check_file(path: str, version: str | None, suffixes: tuple[str, ...]) -> None:
    if not path.startswith("/") or "\0" in path or not path.endswith(suffixes):
        raise WrongPackageError("package", f"must be an absolute path that ends in {' or '.join(suffixes)}")
    if version is not None:
        raise WrongPackageError("version", "does not apply to a local file")
