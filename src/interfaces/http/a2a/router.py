"""Puts the routes of A2A together."""

from infrastructure.container import Container
from interfaces.http.a2a import card_routes, routes, rpc_routes
from interfaces.http.a2a.calls import A2aCalls
from interfaces.http.a2a.cards import PATH, AgentCards
from interfaces.http.a2a.errors import rest_exception_handlers, rpc_exception_handlers
from interfaces.http.a2a.pushes import A2aPushes
from interfaces.http.a2a.tasks import A2aTasks
from interfaces.http.chats.client_threads import ClientThreads
from interfaces.http.protocol_router import protocol_router
from interfaces.http.routing import OwnRouter, built_by
from interfaces.http.stream_places import StreamPlaces


def a2a_routers(container: Container, *, places: StreamPlaces, heartbeat_s: float) -> list[OwnRouter]:
    """Below `/a2a/v1/AGENT`: keys as everywhere, errors of each binding in its own shape. The card
    needs no key."""
    cards = built_by(container, AgentCards)
    pushes = built_by(container, A2aPushes)
    tasks = built_by(
        container, A2aTasks, client_threads=built_by(container, ClientThreads), pushes=pushes, places=places
    )
    calls = A2aCalls(tasks=tasks, pushes=pushes, cards=cards, heartbeat_s=heartbeat_s)
    own = {"a2a_calls": calls, "agent_cards": cards}
    below, rest, rpc = f"{PATH}/{{agent:str}}", rest_exception_handlers(), rpc_exception_handlers()
    return [
        protocol_router(below, container, own, routes, exception_handlers=rest),
        protocol_router(below, container, own, rpc_routes, exception_handlers=rpc),
        protocol_router(below, container, own, card_routes, middleware=[], exception_handlers=rest),
    ]
