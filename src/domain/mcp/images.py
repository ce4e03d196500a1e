"""Parsing of `package` and `version` of a server of kind `oci`, which name a container image."""

import re
from dataclasses import dataclass

from domain.mcp.packages import WrongPackageError

_HOST = r"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?/)?"
_PART = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_DIGEST = r"sha256:[0-9a-f]{64}"
_IMAGE = re.compile(rf"(?P<repository>{_HOST}{_PART}(?:/{_PART})*)(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?")
_VERSION = re.compile(rf"(?P<digest>{_DIGEST})|(?P<tag>{_TAG})")
_MAX_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class OciImage:
    """`repository` begins with its registry, if one is named. `digest` fixes the content, whatever
    the tag."""

    repository: str
    tag: str
    digest: str | None = None

    @property
    def reference(self) -> str:
        """What a container engine pulls."""
        return f"{self.repository}:{self.tag}" if self.digest is None else self.pinned(self.digest)

    @property
    def registry(self) -> str | None:
        """Host of the registry, with its port; None for the default one. As container engines
        decide whether the first part of a repository is one."""
        first, slash, _ = self.repository.partition("/")
        is_host = first == "localhost" or any(each in ".:" or each.isupper() for each in first)
        return first if slash and is_host else None

    def pinned(self, digest: str) -> str:
        return f"{self.repository}@{digest}"


def oci_image(package: str, version: str | None) -> OciImage:
    """Parse `mcp/time`, `ghcr.io/owner/name:tag` or `…@sha256:…`; `version` is a tag or a digest.
    Raises WrongPackageError."""
    found = _IMAGE.fullmatch(package) if len(package) <= _MAX_CHARACTERS else None
    if found is None:
        raise WrongPackageError("package", "must be a container image, such as ghcr.io/owner/name:1.2")
    tag, digest = found["tag"], found["digest"]
    if version is not None:
        if tag is not None or digest is not None:
            raise WrongPackageError("version", "is named in package already")
        given = _VERSION.fullmatch(version)
        if given is None:
            raise WrongPackageError("version", "must be a tag, or a digest (sha256:…)")
        tag, digest = given["tag"], given["digest"]
    return OciImage(repository=found["repository"], tag=tag or "latest", digest=digest)
