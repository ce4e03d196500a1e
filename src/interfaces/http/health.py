"""Health: `live` means that the process responds, `ready` that it can work. Neither requires a
key."""

from typing import Annotated, Literal, TypedDict, cast

from litestar import Response, Router, get
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag

from application.system.readiness import ProcessReadiness
from domain.errors import Violation
from interfaces.http.problems import described_problems, problem

TAG = Tag(name="Health", description="Whether the process is alive, can serve, and how it does.")


class HealthView(TypedDict):
    """The process is healthy."""

    status: Annotated[Literal["live", "ready"], "`live`: the process responds; `ready`: it can work."]


@get("/health/live", summary="Is the process alive?", sync_to_thread=False)
def live() -> HealthView:
    """Always 200."""
    return {"status": "live"}


@get("/health/ready", summary="Can the process serve?", responses=described_problems(503))
async def ready(readiness: NamedDependency[ProcessReadiness]) -> Response[HealthView]:
    """503 if not ready; `errors` lists each missing part as a `path`: `database`, `migrations`,
    `queue`, `worker`, `stopping`."""
    missing = await readiness.problems()
    if missing:
        parts = ", ".join(obstacle.part for obstacle in missing)
        faults = tuple(Violation(path=obstacle.part, message=obstacle.detail) for obstacle in missing)
        return cast("Response[HealthView]", problem(503, "not_ready", f"Not ready: {parts}.", violations=faults))
    return Response({"status": "ready"})


def health_router() -> Router:
    return Router("/", route_handlers=[live, ready], tags=[TAG.name])
