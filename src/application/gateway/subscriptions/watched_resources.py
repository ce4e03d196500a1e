"""Resources that one subscriber watches at their servers."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from application.gateway.contents.content_names import ContentKind, exposed_uri
from application.gateway.contents.content_sources import ContentSources
from application.gateway.subscriptions.check_subscription import MAX_URI, CheckSubscription, Watchable
from application.gateway.tools.gateway_toolset import scope_of
from application.mcp.news import McpResourceNews, Release
from application.policy.canary_guard import CanaryGuard
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import GatewaySession, ToolNames


@dataclass(slots=True)
class _Watch:
    watchable: Watchable
    release: Release


class WatchedResources:
    """Rules:
    - A resource is watched while the subscriber wants it and policy allows reading it; `watch`
      checks both again.
    - `on_update` receives the client's name of an updated resource, never one that is too long
      or holds a canary token.
    """

    def __init__(
        self,
        session: GatewaySession,
        on_update: Callable[[str], None],
        *,
        sources: ContentSources,
        check: CheckSubscription,
        resources: McpResourceNews,
    ) -> None:
        self._session = session
        self._on_update = on_update
        self._sources = sources
        self._check = check
        self._resources = resources
        self._watches: dict[str, _Watch] = {}

    def __contains__(self, uri: str) -> bool:
        return uri in self._watches

    async def watch(self, wanted: Iterable[str]) -> None:
        """Watch exactly the wanted resources that are allowed now."""
        wanted = tuple(wanted)
        if not wanted and not self._watches:
            return
        allowed: dict[str, Watchable] = {}
        guard: CanaryGuard | None = None
        with _nothing_if_refused():
            sources = await self._sources.of(self._session, ContentKind.RESOURCES)
            guard = sources.tools.guard
            for uri in wanted:
                with _nothing_if_refused():
                    allowed[uri] = await self._check.among(sources, uri)
        for uri, watch in list(self._watches.items()):
            if allowed.get(uri) != watch.watchable:
                self._watches.pop(uri).release()
        for uri, watchable in allowed.items():
            if uri not in self._watches:
                release = self._resources.watch(
                    watchable.server, scope_of(self._session), watchable.uri, self._updating(watchable, guard)
                )
                self._watches[uri] = _Watch(watchable, release)

    def release(self) -> None:
        for watch in self._watches.values():
            watch.release()
        self._watches.clear()

    def _updating(self, watchable: Watchable, guard: CanaryGuard | None) -> Callable[[str], None]:
        slug = watchable.server.config.slug
        is_original = self._session.names is ToolNames.ORIGINAL

        def updated(own: str) -> None:
            # The server chooses the names below the resource.
            if len(own) > MAX_URI or (guard is not None and guard.arguments({"uri": own}) is not None):
                return
            self._on_update(own if is_original else exposed_uri(own, slug))

        return updated


@contextmanager
def _nothing_if_refused() -> Iterator[None]:
    """End the block early if the session may not see something, or it is gone."""
    try:
        yield
    except ServiceError as error:
        if error.kind not in (ErrorKind.FORBIDDEN, ErrorKind.NOT_FOUND):
            raise
