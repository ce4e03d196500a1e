"""Puts the routes of AG-UI together."""

from infrastructure.container import Container
from interfaces.http.ag_ui import routes
from interfaces.http.ag_ui.runs import AgUiRuns
from interfaces.http.chats.client_threads import ClientThreads
from interfaces.http.protocol_router import protocol_router
from interfaces.http.routing import OwnRouter, built_by
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
    return protocol_router("/ag-ui/v1", container, {"ag_ui_runs": runs}, routes)
