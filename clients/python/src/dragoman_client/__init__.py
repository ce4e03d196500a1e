"""Client of Dragoman: `Dragoman`, and `AsyncDragoman` for asyncio and trio. `models` has the shapes
of the HTTP API."""

from dragoman_client import models
from dragoman_client.aio import AsyncDragoman, AsyncRun, AsyncThread, AsyncWorkflowRun
from dragoman_client.errors import (
    ApiError,
    Conflict,
    ConnectionLost,
    DragomanError,
    Forbidden,
    Invalid,
    LimitReached,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from dragoman_client.sync import Dragoman, Run, Thread, WorkflowRun

__all__ = [
    "ApiError",
    "AsyncDragoman",
    "AsyncRun",
    "AsyncThread",
    "AsyncWorkflowRun",
    "Conflict",
    "ConnectionLost",
    "Dragoman",
    "DragomanError",
    "Forbidden",
    "Invalid",
    "LimitReached",
    "NotFound",
    "Run",
    "Thread",
    "Unauthenticated",
    "Unavailable",
    "WorkflowRun",
    "models",
]
