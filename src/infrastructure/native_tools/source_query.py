"""source_query: full-text search over the sources of the thread. Below: the SearchSources use
case."""

from application.sources.search_sources import SearchSources, SearchSourcesCommand, SourcesSearched
from application.tools.ports import NativeToolContext, NativeToolError, NativeToolOutput
from domain.errors import ServiceError, is_storage_away
from domain.json_value import JsonObject, JsonValue
from domain.sources.ranking import FoundChunk
from domain.sources.source import Source
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool

DEFAULT_RESULTS = 5
MAX_RESULTS = 20
MAX_QUERY_CHARACTERS = 2_000
_LISTED = 50
"""Most sources that are named when nothing was found."""

SOURCE_QUERY = Tool(
    name=ToolType.SOURCE_QUERY.value,
    type=ToolType.SOURCE_QUERY,
    description=(
        "Search the text of the files of this conversation (text, Markdown, CSV, HTML, PDF) and get the passages that fit"
        " best, with file name and lines. Finds words, not meanings: use words that the files probably use, and ask"
        " again with others if nothing fits."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "The words to look for. Operators and quotes mean nothing.",
                "minLength": 1,
                "maxLength": MAX_QUERY_CHARACTERS,
            },
            "max_results": {
                "type": "integer",
                "description": f"How many passages to return, {DEFAULT_RESULTS} if left out.",
                "minimum": 1,
                "maximum": MAX_RESULTS,
            },
            "source": {"type": "string", "description": "The name of the only file to search. All, if left out."},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    repeatable=True,  # it reads only
)


class SourceQueryTool:
    """Searches the thread of the call only."""

    def __init__(self, *, search_sources: SearchSources) -> None:
        self._search_sources = search_sources

    @property
    def tool(self) -> Tool:
        return SOURCE_QUERY

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        """`{"results": [{source_id, file, start_line, end_line, page?, heading?, text}], "note"?}`,
        best first. Raises NativeToolError `source_not_found`."""
        question, source = arguments["query"], arguments.get("source")
        limit = arguments.get("max_results", DEFAULT_RESULTS)
        if not isinstance(question, str) or not isinstance(source, str | None) or not isinstance(limit, int | float):
            raise TypeError("arguments are validated before a tool runs")
        try:
            searched = await self._search_sources.execute(
                SearchSourcesCommand(
                    organization_id=context.organization_id,
                    thread_id=context.thread_id,
                    question=question,
                    source=source,
                    max_results=int(limit),  # 5.0 is an integer too (JSON Schema 2020-12, Core, 4.2.3)
                )
            )
        except ServiceError as error:
            if is_storage_away(error):
                raise
            raise NativeToolError(error.code, error.detail) from error
        results: list[JsonValue] = [_result(found) for found in searched.found]
        value: JsonObject = {"results": results}
        if not results:
            value["note"] = _why_nothing(searched)
        return NativeToolOutput(value=value)


def _result(found: FoundChunk) -> JsonObject:
    chunk = found.chunk
    result: JsonObject = {
        "source_id": found.source_id,
        "file": found.source_name,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
    }
    if chunk.page is not None:
        result["page"] = chunk.page
    if chunk.heading is not None:
        result["heading"] = chunk.heading
    result["text"] = chunk.text
    return result


def _why_nothing(searched: SourcesSearched) -> str:
    if not searched.searched:
        return "This conversation has no files."
    shown = ", ".join(map(_named, searched.searched[:_LISTED]))
    more = len(searched.searched) - _LISTED
    return f"Nothing was found in: {shown}{f', and {more} more' if more > 0 else ''}."


def _named(source: Source) -> str:
    if source.problem is not None:
        return f"{source.name} ({source.problem})"
    return source.name if source.chunks else f"{source.name} (not searchable)"
