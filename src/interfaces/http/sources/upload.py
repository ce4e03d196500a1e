"""Streams the file in the body of an upload, multipart or raw, without buffering it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from litestar.exceptions import ClientException
from multipart import (  # type: ignore[import-untyped]  # it has no types
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
)

from domain.errors import Violation, invalid
from domain.sources.source import MAX_SOURCE_BYTES
from interfaces.http.requests import ApiRequest

MAX_UPLOAD_BYTES = MAX_SOURCE_BYTES + 64 * 1024
"""Size limit of a body: a file and the form around it."""
_FIELD = "file"
_MAX_FIELDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file in transit: its name, and its bytes as they arrive."""

    name: str
    content: AsyncIterator[bytes]


async def upload_of(request: ApiRequest, name: str | None) -> Upload:
    """The part `file` of a form, else the body itself, which requires `name`. `name` takes
    precedence over the form's. Raises INVALID `file_missing`, `source_name_missing`;
    ClientException for an invalid form."""
    content_type, options = request.content_type
    if content_type != "multipart/form-data":
        if name is None:
            fault = Violation(path="name", message="is required where the body is the file itself")
            raise invalid("source_name_missing", "The file needs a name: `?name=notes.md`.", fault)
        return Upload(name=name, content=request.stream())
    form = _form_file(request, options.get("boundary", ""))
    # The first item is the file name in the form.
    named = await anext(form, None)
    if not isinstance(named, str):
        fault = Violation(path=_FIELD, message="must be a file of the form")
        raise invalid("file_missing", "The form has no file named `file`.", fault)
    return Upload(name=name or named, content=_bytes_of(form))


async def _bytes_of(form: AsyncIterator[str | bytes]) -> AsyncIterator[bytes]:
    async for data in form:
        if isinstance(data, bytes):
            yield data


async def _form_file(request: ApiRequest, boundary: str) -> AsyncIterator[str | bytes]:
    """The name of the first file in the field, then its bytes; other fields are skipped."""
    inside = done = False
    try:
        with PushMultipartParser(boundary, max_segment_count=_MAX_FIELDS) as parser:
            async for data in request.stream():
                for event in parser.parse(data):
                    if isinstance(event, MultipartSegment):
                        inside = not done and event.name == _FIELD and event.filename is not None
                        if inside:
                            yield _file_name(str(event.filename))
                    elif event is None:
                        done, inside = done or inside, False
                    elif inside:
                        yield bytes(event)
    except MultipartError as error:
        raise ClientException("The form is not valid multipart/form-data.") from error


def _file_name(given: str) -> str:
    """The file name without a path; some clients send the path on their machine."""
    return given.replace("\\", "/").rpartition("/")[2]
