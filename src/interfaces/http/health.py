"""Health: `live` says that the process answers, `ready` that it can do its work. Neither needs a key."""

from typing import Literal, TypedDict

from litestar import Response, Router, get
from litestar.di import NamedDependency

from interfaces.http.problems import described_problems, problem
from interfaces.http.use_cases import Readiness


class HealthView(TypedDict):
    """All is well."""

    status: Literal["live", "ready"]


class ReadinessProbe:
    """The readiness of the process, as handlers are given it."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness

    async def problems(self) -> tuple[str, ...]:
        """What is not ready."""
        return await self._readiness.problems()


@get("/health/live", summary="Is the process alive?", sync_to_thread=False)
def live() -> HealthView:
    """Always, if it can answer."""
    return {"status": "live"}


@get("/health/ready", summary="Can the process serve?", responses=described_problems(503))
async def ready(readiness: NamedDependency[ReadinessProbe]) -> HealthView | Response[dict[str, object]]:
    """503 with what is missing, if not."""
    missing = await readiness.problems()
    if missing:
        return problem(503, "not_ready", f"Not ready: {', '.join(missing)}.")
    return {"status": "ready"}


def health_router() -> Router:
    """The routes of health."""
    return Router("/", route_handlers=[live, ready], tags=["health"])
