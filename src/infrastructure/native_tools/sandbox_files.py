"""The files of sandboxed code: the sources of its thread in one flat folder, and the files that it
writes.

Nothing here touches a file system. The interpreter requests files by name. Contents come from the
sources; written files stay in bounded memory until the code has ended.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from pydantic_monty import NOT_HANDLED, MontyFileHandle, StatResult

from domain.errors import ServiceError
from domain.sources.source import Source, require_name

FOLDER = PurePosixPath("/sources")
"""The only folder, and the working directory of the code."""

ReadSource = Callable[[Source], Awaitable[bytes]]


class SandboxFiles:
    """Answers the file operations of one execution (the interpreter's `OsHandler`). Of several
    sources with one name the newest is used.

    `max_read_bytes` bounds the total read from sources; `max_written_bytes` the files that the code
    leaves behind.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        read: ReadSource,
        *,
        max_read_bytes: int,
        max_written_bytes: int,
        max_files: int,
    ) -> None:
        self._sources = {source.name: source for source in reversed(sources)}
        self._read = read
        self._left_to_read = max_read_bytes
        self._max_written_bytes = max_written_bytes
        self._max_files = max_files
        self._known: dict[str, bytes] = {}
        self._written: dict[str, bytearray] = {}
        self._size = 0

    @property
    def written(self) -> dict[str, bytes]:
        return {name: bytes(content) for name, content in self._written.items()}

    def __call__(
        self, *, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], is_async: bool, **_future: Any
    ) -> Any:
        """One file operation of the code. Raises OSError and its subclasses, which the code can
        catch."""
        match name, args:
            case "open", (PurePosixPath() as path, str() as mode, *_):
                return self._open(path, mode)
            case "Path.read_text", (path,):
                return self._text(_path_of(path))
            case "Path.read_bytes", (path,):
                return self._bytes(_path_of(path))
            case "Path.write_text" | "Path.write_bytes", (path, data):
                self._write(_path_of(path), data)
                return len(data)
            case "Path.append_text" | "Path.append_bytes", (path, data):
                return self._append(_path_of(path), data)
            case "Path.unlink", (path,):
                return self._remove(path)
            case _, (PurePosixPath() as path,):
                return self._told(name, path)
            case _:
                return NOT_HANDLED

    def _told(self, name: str, path: PurePosixPath) -> Any:
        """Operations on a path that neither read nor write."""
        match name:
            case "Path.exists":
                return path == FOLDER or self._has(path)
            case "Path.is_file":
                return self._has(path)
            case "Path.is_dir":
                return path == FOLDER
            case "Path.is_symlink":
                return False
            case "Path.iterdir":
                return self._listed(path)
            case "Path.stat":
                return self._stat(path)
            case "Path.resolve" | "Path.absolute":
                return str(path)
            case _:
                return NOT_HANDLED

    async def _open(self, path: PurePosixPath, mode: str) -> MontyFileHandle:
        handle = MontyFileHandle(str(path), mode)
        match handle.mode[0]:
            case "r":
                self._require(path)
                if "+" in handle.mode:
                    await self._take_over(path)
            case "w":
                self._write(path, b"")
            case _:
                await self._take_over(path)
        return handle

    async def _text(self, path: PurePosixPath) -> str:
        content = await self._bytes(path)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(f"{path.name} is not text in UTF-8; open it with mode 'rb'") from None

    async def _bytes(self, path: PurePosixPath) -> bytes:
        self._require(path)
        name = path.name
        if name in self._written:
            return bytes(self._written[name])
        if name not in self._known:
            source = self._sources[name]
            if source.size > self._left_to_read:
                raise MemoryError(f"{name} is too large to be read here")
            self._left_to_read -= source.size
            self._known[name] = await self._read(source)
        return self._known[name]

    async def _append(self, path: PurePosixPath, data: str | bytes) -> int:
        await self._take_over(path)
        added = _as_bytes(data)
        self._reserve(len(added))
        self._written[path.name] += added
        return len(data)

    async def _take_over(self, path: PurePosixPath) -> None:
        """Copy a source, or create an empty file, to be written by the code. The source does not
        change."""
        if path.name not in self._written or path.parent != FOLDER:
            self._write(path, await self._bytes(path) if self._has(path) else b"")

    def _write(self, path: PurePosixPath, data: str | bytes) -> None:
        name = self._writable(path)
        content = _as_bytes(data)
        self._reserve(len(content) - len(self._written.get(name, b"")))
        self._written[name] = bytearray(content)

    def _writable(self, path: PurePosixPath) -> str:
        if path.parent != FOLDER:
            raise PermissionError(f"[Errno 13] Permission denied: {str(path)!r}; files are in the current folder alone")
        try:
            require_name(path.name)
        except ServiceError:
            raise OSError("[Errno 22] Invalid argument: this cannot be the name of a file") from None
        if path.name not in self._written and len(self._written) >= self._max_files:
            raise OSError(f"[Errno 28] No space left on device: at most {self._max_files} files can be written")
        return path.name

    def _reserve(self, more: int) -> None:
        if self._size + more > self._max_written_bytes:
            megabytes = self._max_written_bytes // (1024 * 1024)
            raise OSError(f"[Errno 28] No space left on device: at most {megabytes} MiB can be written")
        self._size += more

    def _remove(self, path: PurePosixPath) -> None:
        self._require(path)
        if path.name not in self._written:
            raise PermissionError(f"[Errno 13] Permission denied: {path.name!r} is not a file this code wrote")
        self._size -= len(self._written.pop(path.name))

    def _listed(self, path: PurePosixPath) -> list[PurePosixPath]:
        if path != FOLDER:
            self._require(path)
            raise NotADirectoryError(f"[Errno 20] Not a directory: {str(path)!r}")
        return [FOLDER / name for name in sorted({*self._sources, *self._written})]

    def _stat(self, path: PurePosixPath) -> StatResult:
        if path == FOLDER:
            return StatResult.dir_stat(mtime=0)
        self._require(path)
        written = self._written.get(path.name)
        size = self._sources[path.name].size if written is None else len(written)
        return StatResult.file_stat(size, mtime=0)

    def _require(self, path: PurePosixPath) -> None:
        if path == FOLDER:
            raise IsADirectoryError(f"[Errno 21] Is a directory: {str(path)!r}")
        if not self._has(path):
            raise FileNotFoundError(f"[Errno 2] No such file or directory: {str(path)!r}")

    def _has(self, path: PurePosixPath) -> bool:
        return path.parent == FOLDER and (path.name in self._sources or path.name in self._written)


def _path_of(given: PurePosixPath | MontyFileHandle) -> PurePosixPath:
    return PurePosixPath(given.path) if isinstance(given, MontyFileHandle) else given


def _as_bytes(data: str | bytes) -> bytes:
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
