"""The context of every command: the terminal, and access to the service."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated, Protocol, TypeVar

import typer

from domain.json_value import JsonObject
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import Query, ServiceApi, listed
from interfaces.cli.failures import INTERRUPTED
from interfaces.cli.secret_input import read_secret
from interfaces.cli.terminal import Terminal

ResultT = TypeVar("ResultT")
ViewT = TypeVar("ViewT")


class Connect(Protocol):
    """Access to the service."""

    def __call__(self, *, worker: bool) -> AbstractAsyncContextManager[ServiceApi]:
        """The service, while the context lasts. With `worker`, a service opened for the command
        also executes runs."""


JsonFlag = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    terminal: Terminal
    connect: Connect
    read_secret: Callable[[str], str] = read_secret

    def perform(self, action: Callable[[ServiceApi], Awaitable[int | None]], *, worker: bool = False) -> None:
        """Run the action with the service. Its result, if not 0 or None, is the exit code.
        Without a running service, unfinished runs continue only with `worker`."""

        async def with_service() -> int:
            async with self.connect(worker=worker) as api:
                return await action(api) or 0

        if code := self.complete(with_service()):
            raise typer.Exit(code)

    def show(
        self,
        view: type[ViewT],
        request: Callable[[ServiceApi], Awaitable[JsonObject]],
        display: Callable[[ViewT], None],
        *,
        as_json: bool,
    ) -> None:
        """Send the request and display its answer, or print it as JSON."""

        async def show(api: ServiceApi) -> None:
            document = await request(api)
            if as_json:
                self.terminal.json(document)
            else:
                display(read_as(view, document))

        self.perform(show)

    def show_list(
        self,
        view: type[ViewT],
        path: str,
        columns: Sequence[str],
        row: Callable[[ViewT], Sequence[str]],
        *,
        query: Query | None = None,
        limit: int | None = None,
        empty: str,
        as_json: bool,
    ) -> None:
        """Show a paged list as a table with one row per entry, or print it as JSON."""

        async def show(api: ServiceApi) -> None:
            page = await listed(api, path, query, limit=limit)
            if as_json:
                self.terminal.json(page)
            else:
                self.terminal.table(columns, [row(entry) for entry in entries_of(view, page)], empty=empty)

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
