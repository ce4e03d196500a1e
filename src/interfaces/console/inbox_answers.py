"""Answers to actions that the inbox shares with other pages."""

from litestar import Response
from litestar.plugins.htmx import HTMXHeaders

from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console_paths import PATH

SETTLED = "item-settled"
"""Event of the browser after an item of the inbox has ended."""


def is_from_inbox(request: ConsoleRequest) -> bool:
    """Whether the action was taken in the inbox, which shows no more of the thing than that it is
    done."""
    return f"{PATH}/inbox" in (request.htmx.current_url or "")


def settled(pages: Pages, request: ConsoleRequest, what: str, how: str = "done") -> Response[str]:
    """A line for the inbox, and its event."""
    headers = {HTMXHeaders.TRIGGER_EVENT.value: SETTLED}
    return pages.show(request, "parts/settled.html", {"what": what, "how": how}, headers=headers)
