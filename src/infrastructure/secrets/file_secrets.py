"""Secrets in mounted files: a directory with one for each organization, as Docker, systemd and
Kubernetes mount them."""

import asyncio
import os
import stat
from pathlib import Path

from domain.ids import OrganizationId
from domain.secrets.secret import MAX_VALUE_BYTES, FileReference
from infrastructure.secrets.external_secrets import SecretUnreadableError


class FileSecrets:
    """Rules:
    - An organization has the files below `ROOT/ORGANIZATION_ID` only. That directory may be a
      symbolic link within ROOT, as Kubernetes makes it; links in it lead nowhere else than to its
      own files.
    - Each use reads the file, so that a rotation is seen at the next use.
    - The value is the text without one line end at its end.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    async def value(self, organization_id: OrganizationId, reference: FileReference) -> str | None:
        """None without such a file. Raises SecretUnreadableError."""
        return await asyncio.to_thread(self._read, self._root / organization_id, reference.path)

    def _read(self, directory: Path, path: str) -> str | None:
        try:
            own, real = directory.resolve(), (directory / path).resolve()
            if not (own.is_relative_to(self._root.resolve()) and real.is_relative_to(own)):
                raise SecretUnreadableError("its file is outside the organization's directory of secrets")
            content = _content(real)
            return content.decode().removesuffix("\n").removesuffix("\r")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise SecretUnreadableError("its file is not text") from None
        except (OSError, RuntimeError) as error:
            raise SecretUnreadableError("its file cannot be read") from error


def _content(path: Path) -> bytes:
    """A pipe would block and a link that was put there since would lead out: neither is opened."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SecretUnreadableError("it is not a file")
        content = opened.read(MAX_VALUE_BYTES + 1)
    if len(content) > MAX_VALUE_BYTES:
        raise SecretUnreadableError(f"its file is larger than {MAX_VALUE_BYTES} bytes")
    if b"\0" in content:
        raise SecretUnreadableError("its file is not text")
    return content
