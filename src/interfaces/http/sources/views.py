"""Sources as JSON."""

from typing import Annotated, TypedDict

from domain.sources.source import Source, SourceKind
from domain.threads.message_json import timestamp
from interfaces.http.view_fields import CreatedAt, Items, NextCursor


class SourceView(TypedDict):
    """A file of a thread. `kind`: text, markdown, csv, html, pdf or file. `searchable`: whether
    `source_query` covers it; `problem` says why not, or why only in part. `run_id` names the run
    that created it."""

    id: Annotated[str, "Id of the source."]
    thread_id: Annotated[str, "Id of its thread."]
    name: Annotated[str, "Name of the file."]
    kind: Annotated[SourceKind, "How it is read."]
    size: Annotated[int, "Size in bytes."]
    sha256: Annotated[str, "SHA-256 of the file, in hex."]
    searchable: Annotated[bool, "Whether `source_query` covers it."]
    problem: Annotated[str | None, "Why it is not searchable, or only in part; null if it is."]
    run_id: Annotated[str | None, "The run that created it; null for an upload."]
    created_at: CreatedAt


class SourcePage(TypedDict):
    """A page of sources; `next_cursor` is null on the last one."""

    data: Items[SourceView]
    next_cursor: NextCursor


def source_view(source: Source) -> SourceView:
    return {
        "id": source.id,
        "thread_id": source.thread_id,
        "name": source.name,
        "kind": source.kind,
        "size": source.size,
        "sha256": source.digest,
        "searchable": source.chunks > 0,
        "problem": source.problem,
        "run_id": source.run_id,
        "created_at": timestamp(source.created_at),
    }
