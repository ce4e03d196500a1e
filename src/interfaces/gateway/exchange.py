"""One request of the gateway, as its handlers see it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from domain.gateway.session import GatewaySession, ToolSearch
from interfaces.gateway.generations import Envelope
from interfaces.gateway.messages import RpcMessage
from interfaces.request_notes import RequestNotes

Tell = Callable[[dict[str, object]], Awaitable[None]]
"""Sends a notification that belongs to the current request."""


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request of a session, in the version of its `envelope`.

    - `takes_stream`: the client accepts an event stream as the response.
    - `tool_search`: whether the client is listed meta tools, as its URL says.
    - `notes`: notes for the log line of the request. A message of a batch has none.
    - `tell`: sends notifications before the response. `left`: set when the client disconnects.
      `GatewayAnswers` sets both.
    """

    session: GatewaySession
    envelope: Envelope
    message: RpcMessage
    takes_stream: bool = False
    tool_search: ToolSearch = ToolSearch.AUTO
    notes: RequestNotes | None = None
    tell: Tell | None = None
    left: asyncio.Event | None = None
