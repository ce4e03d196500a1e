"""One request of the gateway, as what answers it is given it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from domain.gateway.session import GatewaySession
from interfaces.gateway.generations import Envelope
from interfaces.gateway.messages import RpcMessage
from interfaces.request_notes import RequestNotes

Tell = Callable[[dict[str, object]], Awaitable[None]]
"""Sends a notification that belongs to the request in hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request: of which session, in which version, and how its client is told of things before the answer, if it can be;
    until it has `left`. `notes` are for its line in the log; a message of a batch has none."""

    session: GatewaySession
    envelope: Envelope
    message: RpcMessage
    tell: Tell | None = None
    left: asyncio.Event | None = None
    notes: RequestNotes | None = None
