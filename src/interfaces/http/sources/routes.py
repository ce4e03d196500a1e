"""Routes of the sources of threads."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from litestar import Response, delete, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIFormat, OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema, Tag
from litestar.params import QueryParameter
from litestar.response import Stream

from application.sources.add_source import AddSource, AddSourceCommand
from application.sources.delete_source import DeleteSource, DeleteSourceCommand
from application.sources.queries import GetSource, ListSources, ReadSource, SourceContent
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from domain.identity.permission import Permission
from domain.ids import SourceId, ThreadId
from domain.sources.source import Source, SourceKind
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import SourcePath, ThreadPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.sources.upload import MAX_UPLOAD_BYTES, upload_of
from interfaces.http.sources.views import SourcePage, SourceView, source_view

TAG = Tag(name="Sources", description="Files of threads.")
SourceName = Annotated[
    str | None,
    QueryParameter(description="The name of the file. Required if the body is the file itself."),
]

_BINARY = "application/octet-stream"
# A type that browsers do not interpret, even if they ignore the download header.
_SHOWN_AS = {
    SourceKind.TEXT: "text/plain",
    SourceKind.MARKDOWN: "text/plain",
    SourceKind.CSV: "text/plain",
}


@dataclass
class UploadOperation(Operation):
    """Describes the body, which the handler reads itself."""

    def __post_init__(self) -> None:
        file = Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.BINARY, description="The file.")
        form = Schema(type=OpenAPIType.OBJECT, properties={"file": file}, required=["file"])
        self.request_body = RequestBody(
            required=True,
            description="A form with the file, or the file itself. Up to 50 MiB.",
            content={
                "multipart/form-data": OpenAPIMediaType(schema=form),
                _BINARY: OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.BINARY)),
            },
        )


@post(
    "/threads/{thread_id:str}/sources",
    summary="Add a source",
    responses=documented(403, 404, 409, 413),
    operation_class=UploadOperation,
    request_max_body_size=MAX_UPLOAD_BYTES,
)
async def add_source(
    *,
    request: ApiRequest,
    thread_id: ThreadPath,
    add_source: NamedDependency[AddSource],
    name: SourceName = None,
) -> Response[SourceView]:
    """Requires the role runner. Runs of the thread search the file (`source_query`) and compute
    with it (`code_execution`). Responds once its text has been extracted. A file without
    readable text is stored too, with the reason."""
    # The use case checks too, but only after the file name was read, which may be in the body.
    request.principal.require(Permission.RUNS_START)
    upload = await upload_of(request, name)
    source = await add_source.execute(
        AddSourceCommand(
            principal=request.principal, thread_id=ThreadId(thread_id), name=upload.name, content=upload.content
        )
    )
    return Response(source_view(source), headers={"Location": f"/v1/sources/{source.id}"})


@get("/threads/{thread_id:str}/sources", summary="List the sources of a thread", responses=documented(404))
async def list_sources(
    *,
    request: ApiRequest,
    thread_id: ThreadPath,
    list_sources: NamedDependency[ListSources],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> SourcePage:
    """Newest first."""
    return page_view(
        await list_sources.execute(
            principal=request.principal, thread_id=ThreadId(thread_id), page=PageRequest(limit=limit, cursor=cursor)
        ),
        source_view,
    )


@get("/sources/{source_id:str}", summary="Read a source", responses=documented(404))
async def get_source(request: ApiRequest, source_id: SourcePath, get_source: NamedDependency[GetSource]) -> SourceView:
    """Metadata without the content."""
    return source_view(await get_source.execute(principal=request.principal, source_id=SourceId(source_id)))


@get(
    "/sources/{source_id:str}/content",
    summary="Download a source",
    responses={
        200: ResponseSpec(data_container=bytes, description="The file.", media_type=_BINARY, generate_examples=False),
        **documented(404),
    },
)
async def get_source_content(
    request: ApiRequest, source_id: SourcePath, read_source: NamedDependency[ReadSource]
) -> Stream:
    """The original file, always as a download."""
    return content_response(await read_source.execute(principal=request.principal, source_id=SourceId(source_id)))


@delete("/sources/{source_id:str}", summary="Delete a source", responses=documented(403, 404))
async def delete_source(
    request: ApiRequest, source_id: SourcePath, delete_source: NamedDependency[DeleteSource]
) -> None:
    """Requires the role runner. Deletes the file and its text."""
    await delete_source.execute(DeleteSourceCommand(principal=request.principal, source_id=SourceId(source_id)))


def content_response(found: SourceContent) -> Stream:
    """The file as a download."""
    return Stream(
        found.content,
        media_type=_SHOWN_AS.get(found.source.kind, _BINARY),
        headers=_download_headers(found.source),
    )


def _download_headers(source: Source) -> dict[str, str]:
    """Headers that prevent browsers from executing uploads. File names by RFC 6266, appendix D."""
    plain = "".join(
        character if character.isascii() and character.isprintable() and character not in '"\\%' else "_"
        for character in source.name
    )
    return {
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(source.name, safe='')}",
        "Content-Length": str(source.size),
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, no-store",
    }
