"""What an organization chooses about a server: checks of results, lost connections, requests."""

from enum import StrEnum


class OutputValidation(StrEnum):
    """How `structuredContent` that does not match the tool's `outputSchema` is handled."""

    OFF = "off"
    WARN = "warn"
    ENFORCE = "enforce"


class ConnectionLoss(StrEnum):
    """What happens to a server's tools while the organization's shared connection is lost."""

    UNREGISTER = "unregister"
    """Runs do not have the tools during the loss, from their next turn on. Needs isolation
    `shared`."""
    MARK_UNHEALTHY = "mark_unhealthy"
    """The tools stay registered; calls report that the server is not connected."""


class ElicitationPolicy(StrEnum):
    """How a server's request for input in the middle of a call is handled."""

    DECLINE = "decline"
    """The server gets a decline, and the model learns of the request."""
    ASK = "ask"
    """The run is suspended until a person answers."""


class PassingPolicy(StrEnum):
    """How a server's request for sampling or roots is handled. Only gateway clients can
    answer it."""

    DECLINE = "decline"
    """The request is declined."""
    PASS = "pass"
    """The request is passed to the client of the call, if the client supports it. A run has
    none."""
