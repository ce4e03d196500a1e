"""The context of every command: the terminal, and access to the service."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated, Protocol, TypeVar

import typer

from domain.json_value import JsonObject
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import Query, ServiceApi, listed
from interfaces.cli.failures import INTERRUPTED
from interfaces.cli.names import names_by_id
from interfaces.cli.references import References
from interfaces.cli.terminal import Terminal
from interfaces.cli.typed_input import read_line, read_secret

ResultT = TypeVar("ResultT")
ViewT = TypeVar("ViewT")


class Connect(Protocol):
    """Access to the service."""

    def __call__(self, *, worker: bool, creates: bool = False) -> AbstractAsyncContextManager[ServiceApi]:
        """The service, while the context lasts. With `worker`, a service opened for the command
        also executes runs. Only with `creates` a data directory is created."""


JsonFlag = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    terminal: Terminal
    connect: Connect
    read_secret: Callable[[str], str] = read_secret
    read_line: Callable[[str], str | None] = read_line

    def perform(
        self, action: Callable[[ServiceApi], Awaitable[int | None]], *, worker: bool = False, creates: bool = False
    ) -> None:
        """Run the action with the service. Its result, if not 0 or None, is the exit code.
        Without a running service, unfinished runs continue only with `worker`. An action that
        stores something `creates` the data directory if there is none."""

        async def with_service() -> int:
            async with self.connect(worker=worker, creates=creates) as api:
                return await action(References(api)) or 0

        if code := self.complete(with_service()):
            raise typer.Exit(code)

    def show(
        self,
        view: type[ViewT],
        request: Callable[[ServiceApi], Awaitable[JsonObject]],
        display: Callable[[ViewT], None],
        *,
        as_json: bool,
        creates: bool = False,
    ) -> None:
        """Send the request and display its answer, or print it as JSON."""

        async def show(api: ServiceApi) -> None:
            document = await request(api)
            if as_json:
                self.terminal.json(document)
            else:
                display(read_as(view, document))

        self.perform(show, creates=creates)

    def show_named(
        self,
        view: type[ViewT],
        request: Callable[[ServiceApi], Awaitable[JsonObject]],
        display: Callable[[ViewT, Mapping[str, str]], None],
        *,
        names: Sequence[str],
        as_json: bool,
    ) -> None:
        """As `show`; the display gets the names, by id, of the kinds with the prefixes `names`."""

        async def show(api: ServiceApi) -> None:
            document = await request(api)
            if as_json:
                self.terminal.json(document)
            else:
                display(read_as(view, document), await names_by_id(api, *names))

        self.perform(show)

    def show_list(
        self,
        view: type[ViewT],
        path: str,
        columns: Sequence[str],
        row: Callable[[ViewT, Mapping[str, str]], Sequence[str]],
        *,
        names: Sequence[str] = (),
        query: Query | None = None,
        limit: int | None = None,
        empty: str,
        as_json: bool,
    ) -> None:
        """Show a paged list as a table with one row per entry, or print it as JSON. A row gets the
        names, by id, of the kinds with the prefixes `names`."""

        async def show(api: ServiceApi) -> None:
            page = await listed(api, path, query, limit=limit)
            if as_json:
                self.terminal.json(page)
            else:
                entries = entries_of(view, page)
                named = await names_by_id(api, *names) if entries else {}
                self.terminal.table(columns, [row(entry, named) for entry in entries], empty=empty)

        self.perform(show)

    def delete(self, path: str, done: str) -> None:
        """Delete a resource, and note that it is done."""

        async def delete(api: ServiceApi) -> None:
            await api.delete(path)
            self.terminal.note(done)

        self.perform(delete)

    def complete(self, work: Coroutine[None, None, ResultT]) -> ResultT:
        """Run asynchronous work, unless the user interrupts it."""
        import asyncio

        try:
            return asyncio.run(work)
        except KeyboardInterrupt:
            self.terminal.note("Interrupted.")
            raise typer.Exit(INTERRUPTED) from None


def session_of(context: typer.Context) -> Session:
    """The session of the invocation."""
    session = context.find_object(Session)
    if session is None:
        raise RuntimeError("a command was invoked without a session")
    return session
