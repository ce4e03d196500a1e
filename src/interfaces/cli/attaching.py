"""Local files as parts of a message."""

from collections.abc import Sequence
from pathlib import Path

from domain.errors import ServiceError
from domain.json_value import JsonValue
from domain.threads.attachments import MAX_ATTACHED_BYTES, attachment, require_few_attachments
from domain.threads.message import TextContent, UserContent
from domain.threads.message_json import content_to_json
from interfaces.cli.failures import BadUsage


def input_with(text: str, files: Sequence[Path]) -> JsonValue:
    """The input of a run: a text, or parts with the files. Raises BadUsage."""
    if not files:
        return text
    content: list[UserContent] = [TextContent(text=text), *[attachment(file.name, _bytes_of(file)) for file in files]]
    try:
        require_few_attachments(content, "--attach")
    except ServiceError as error:
        raise _refused(error) from error
    return [content_to_json(part) for part in content]


def require_readable(file: Path) -> None:
    """Raises BadUsage for a file that cannot be attached."""
    _bytes_of(file)


def _bytes_of(file: Path) -> bytes:
    try:
        if file.stat().st_size > MAX_ATTACHED_BYTES:
            raise BadUsage(
                f"{file} has more than {MAX_ATTACHED_BYTES // 2**20} MiB, the most of a message's files in sum."
            )
        return file.read_bytes()
    except OSError as exc:
        raise BadUsage(f"{file} cannot be read: {exc.strerror}.") from exc


def _refused(error: ServiceError) -> BadUsage:
    (violation,) = error.violations
    return BadUsage(f"{violation.path} {violation.message}.")
