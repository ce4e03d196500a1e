"""The route of SCIM: its own tokens, errors and media type."""

from urllib.parse import parse_qsl

from litestar import HttpMethod, Response, route
from litestar.di import NamedDependency

from interfaces.http.requests import ApiRequest
from interfaces.http.scim.entry import PATH, ScimEntry

_METHODS = [HttpMethod.GET, HttpMethod.POST, HttpMethod.PUT, HttpMethod.PATCH, HttpMethod.DELETE]


@route(["/", "/{rest:path}"], http_method=_METHODS)
async def scim(request: ApiRequest, scim_entry: NamedDependency[ScimEntry]) -> Response[bytes]:
    """Everything below `/scim/v2`."""
    answer = await scim_entry.answer(
        method=request.method,
        base_url=str(request.base_url),
        path=request.scope["path"].removeprefix(PATH),
        query=dict(parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)),
        headers=[*request.scope["headers"]],
        body=await request.body(),
    )
    return Response(answer.body, status_code=answer.status, headers=answer.headers)
