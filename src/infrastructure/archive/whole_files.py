"""Private files that are written whole, or not at all, and are durable."""

import os
import secrets
from pathlib import Path


def put_file(path: Path, content: bytes) -> None:
    """Write a file whole, or not at all. Others may write the same one."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        with open(draft, "xb", opener=_private) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    keep_names(path.parent)


def keep_names(folder: Path) -> None:
    """Make the names in it durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
