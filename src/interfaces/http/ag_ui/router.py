"""Puts the routes of AG-UI together."""

from infrastructure.container import Container
from interfaces.http.ag_ui import routes
from interfaces.http.ag_ui.runs import AgUiRuns
from interfaces.http.auth import authentication
from interfaces.http.chats.client_threads import ClientThreads
from interfaces.http.routing import OwnRouter, built_by, dependencies, routes_of
from interfaces.http.stream_places import StreamPlaces


def ag_ui_router(container: Container, *, places: StreamPlaces, heartbeat_s: float) -> OwnRouter:
    """Below `/ag-ui/v1`: keys and errors as everywhere."""
    runs = built_by(
        container,
        AgUiRuns,
        client_threads=built_by(container, ClientThreads),
        places=places,
        heartbeat_s=heartbeat_s,
    )
    handlers = routes_of(routes)
    return OwnRouter(
        "/ag-ui/v1",
        route_handlers=handlers,
        dependencies=dependencies(handlers, container, {"ag_ui_runs": runs}),
        middleware=[authentication(container.authenticate())],
        include_in_schema=False,
    )
