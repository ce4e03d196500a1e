"""Sources as JSON."""

from typing import TypedDict

from domain.sources.source import Source
from domain.threads.message_json import timestamp


class SourceView(TypedDict):
    """A file of a thread. `kind`: text, markdown, csv, html, pdf or file. `searchable`: whether
    `source_query` covers it; `problem` says why not, or why only in part. `run_id` names the run
    that created it."""

    id: str
    thread_id: str
    name: str
    kind: str
    size: int
    sha256: str
    searchable: bool
    problem: str | None
    run_id: str | None
    created_at: str


class SourcePage(TypedDict):
    """A page of sources; `next_cursor` is null on the last one."""

    data: list[SourceView]
    next_cursor: str | None


def source_view(source: Source) -> SourceView:
    return {
        "id": source.id,
        "thread_id": source.thread_id,
        "name": source.name,
        "kind": source.kind.value,
        "size": source.size,
        "sha256": source.digest,
        "searchable": source.chunks > 0,
        "problem": source.problem,
        "run_id": source.run_id,
        "created_at": timestamp(source.created_at),
    }
