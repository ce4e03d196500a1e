"""What handlers ask for by name is what the container has under that name."""

from collections.abc import Callable

import pytest
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler

from infrastructure.container import Container
from interfaces.asgi import create_app
from interfaces.console.app import console_app
from interfaces.http.app import create_monitoring_app
from interfaces.http.protocols import protocols_app
from interfaces.http.routing import dependencies, named_dependencies, routes_of
from interfaces.http.runs import routes as runs
from interfaces.http.runs.frames import EventFrames
from interfaces.http.stream_places import StreamPlaces
from tests.composition import a_container
from tests.integration.http.service import a_service_container
from tests.integration.http.tables import InMemoryTables


def _console(container: Container) -> Litestar:
    return console_app(container, frames=EventFrames(), places=StreamPlaces.among(4), heartbeat_s=15.0)


def _protocols(container: Container) -> Litestar:
    return protocols_app(container, places=StreamPlaces.among(4), heartbeat_s=15.0)


def _handlers(app: Litestar) -> list[HTTPRouteHandler]:
    handlers = [handler for route in app.routes for handler in getattr(route, "route_handlers", ())]
    return [handler for handler in handlers if isinstance(handler, HTTPRouteHandler)]


@pytest.mark.parametrize("make", [create_app, _console, _protocols, create_monitoring_app])
async def test_every_handler_is_given_an_instance_of_the_class_that_it_asks_for(
    make: Callable[[Container], Litestar],
) -> None:
    asked = 0
    for handler in _handlers(make(a_service_container(InMemoryTables()))):
        provided = handler.resolve_dependencies()
        for name, wanted in named_dependencies(handler).items():
            assert isinstance(await provided[name](), wanted), (handler.handler_name, name)
            asked += 1
    assert asked >= 2


def test_a_name_that_nothing_provides_stops_the_start() -> None:
    with pytest.raises(KeyError, match="run_"):
        dependencies(routes_of(runs), a_container())
