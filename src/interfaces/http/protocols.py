"""Assembles the protocols of front ends and other agents as a separate application, loaded on first
use (protocols_entry.py)."""

from litestar import Litestar

from infrastructure.container import Container
from interfaces.http.a2a.router import a2a_routers
from interfaces.http.ag_ui.router import ag_ui_router
from interfaces.http.ai_sdk.router import ai_sdk_router
from interfaces.http.bodies import MAX_JSON_BYTES, BodyDecoding
from interfaces.http.openai.errors import handlers_by_path
from interfaces.http.openai.router import PATH as OPENAI_PATH
from interfaces.http.openai.router import openai_router
from interfaces.http.requests import ApiRequest
from interfaces.http.stream_places import StreamPlaces


def protocols_app(container: Container, *, places: StreamPlaces, heartbeat_s: float) -> Litestar:
    """Its routes are not in the OpenAPI document."""
    return Litestar(
        route_handlers=[
            openai_router(container, places=places, heartbeat_s=heartbeat_s),
            ai_sdk_router(container, places=places, heartbeat_s=heartbeat_s),
            ag_ui_router(container, places=places, heartbeat_s=heartbeat_s),
            *a2a_routers(container, places=places, heartbeat_s=heartbeat_s),
        ],
        request_class=ApiRequest,
        request_max_body_size=MAX_JSON_BYTES,
        exception_handlers=handlers_by_path(OPENAI_PATH),
        plugins=[BodyDecoding()],
        openapi_config=None,
        logging_config=None,
    )
