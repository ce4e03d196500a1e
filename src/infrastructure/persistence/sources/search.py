"""Full-text search over sources: FTS5 on SQLite, a tsvector with a GIN index on PostgreSQL.

The words, their normalization and the final order are in `domain.sources`, so both databases
find the same; here candidates are selected. Words contain only letters and digits, so none is an
operator, and they are passed as parameters.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, String, bindparam, text

from domain.ids import OrganizationId, SourceId, ThreadId
from domain.sources.ranking import FoundChunk
from domain.sources.words import PREFIX_FROM, SearchQuery
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.sources.rows import found_chunk_of

_COLUMNS = """
    SELECT c.source_id, s.name AS source_name, c.position, c.text, c.start_line, c.end_line, c.page, c.heading
"""
_SCOPE = """
    c.organization_id = :organization_id AND c.thread_id = :thread_id AND s.thread_id = :thread_id AND s.finished
    AND (:everywhere OR c.source_id IN :source_ids)
"""
# The FTS5 table covers all threads: with the thread's id among the words, only its chunks are read.
_sqlite = text(
    f"""{_COLUMNS}
    FROM source_words JOIN source_chunk c ON c.id = source_words.rowid JOIN source s ON s.id = c.source_id
    WHERE source_words MATCH :wanted AND {_SCOPE}
    ORDER BY source_words.rank, c.id LIMIT :most"""
)
_postgres = text(
    f"""{_COLUMNS}
    FROM source_chunk c JOIN source s ON s.id = c.source_id
    WHERE c.words @@ CAST(:wanted AS tsquery) AND {_SCOPE}
    ORDER BY ts_rank(c.words, CAST(:wanted AS tsquery)) DESC, c.id LIMIT :most"""
)
_parameters = (bindparam("source_ids", expanding=True, type_=String), bindparam("wanted", type_=String))


class SqlSourceSearch:
    """The `SourceSearch` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def find(
        self,
        organization_id: OrganizationId,
        thread_id: ThreadId,
        query: SearchQuery,
        *,
        source_ids: Sequence[SourceId] | None,
        limit: int,
    ) -> tuple[FoundChunk, ...]:
        if not query.words:
            return ()

        def unit(connection: Connection) -> tuple[FoundChunk, ...]:
            on_sqlite = connection.dialect.name == "sqlite"
            statement = (_sqlite if on_sqlite else _postgres).bindparams(*_parameters)
            wanted = _fts5(thread_id, query) if on_sqlite else _tsquery(query)
            rows = connection.execute(
                statement,
                {
                    "organization_id": organization_id,
                    "thread_id": thread_id,
                    "everywhere": source_ids is None,
                    "source_ids": list(source_ids or ()),
                    "wanted": wanted,
                    "most": limit,
                },
            )
            return tuple(found_chunk_of(row) for row in rows)

        return await self._database.read(unit, scope=organization_id)


def _fts5(thread_id: ThreadId, query: SearchQuery) -> str:
    """FTS5's query language: https://www.sqlite.org/fts5.html#full_text_query_syntax."""
    words = " OR ".join(f'"{word}"{"*" if len(word) >= PREFIX_FROM else ""}' for word in query.words)
    scope = thread_id.replace('"', '""')
    return f'thread_id : "{scope}" AND words : ({words})'


def _tsquery(query: SearchQuery) -> str:
    """A tsquery in text form: https://www.postgresql.org/docs/current/datatype-textsearch.html#DATATYPE-TSQUERY."""
    return " | ".join(f"'{word}'{':*' if len(word) >= PREFIX_FROM else ''}" for word in query.words)
