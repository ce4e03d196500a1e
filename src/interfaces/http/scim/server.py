"""Answers requests below `/scim/v2`. Imported at the first of them, because the library takes
megabytes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from scim2_models import Error, InvalidValueException, PatchOp, Resource, SCIMException, UnauthorizedException
from scim2_server.conditions import Conditions
from scim2_server.handler import AsyncScimHandler
from scim2_server.requests import ScimRequest
from scim2_server.responses import ScimResponse
from scim2_server.routing import Operation
from scim2_server.service import ScimService

from application.provisioning.authenticate_directory import AuthenticateDirectory
from domain.errors import ErrorKind, ServiceError
from domain.identity.identity_provider import IdentityProvider
from interfaces.http.auth import bearer_token
from interfaces.http.scim.entry import ScimAnswer
from interfaces.http.scim.resources import User, scim_provider
from interfaces.http.scim.storage import DirectoryStorage, DirectoryUseCases

_PLAIN = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "model_type": "must be an object",
    "string_type": "must be a text",
}
"""Of faults in values, by pydantic's types of them."""


class DirectoryService(ScimService):
    """A change that leaves a person inactive is stored even if it changes nothing: it ends what a
    failure left."""

    def apply_patch(
        self, current: Resource[Any], patch_op: "PatchOp[Any]", conditions: Conditions
    ) -> Resource[Any] | None:
        return super().apply_patch(current, patch_op, conditions) or _inactive(current)

    def apply_replacement(
        self, current: Resource[Any], replacement: Resource[Any], conditions: Conditions
    ) -> Resource[Any] | None:
        return super().apply_replacement(current, replacement, conditions) or _inactive(current)


def _inactive(resource: Resource[Any]) -> Resource[Any] | None:
    return resource if isinstance(resource, User) and resource.active is False else None


def _in_plain_words(error: SCIMException) -> SCIMException:
    if not isinstance(error.__cause__, ValidationError):
        return error
    fault = error.__cause__.errors()[0]
    if fault["type"] not in _PLAIN:
        return SCIMException.from_error(Error.from_validation_error(fault))
    place = ".".join(
        to_camel(step) if isinstance(step, str) and step.isidentifier() else str(step) for step in fault["loc"]
    )
    return InvalidValueException(detail=f"{place or 'The body'} {_PLAIN[fault['type']]}.")


class ScimServer:
    """Rules:
    - A directory sends the token of its identity provider, and manages that one's people and groups
      only.
    - What the service offers (`/ServiceProviderConfig`) is public (RFC 7643, section 5).
    - Errors have the shape of SCIM, except those of rate limits and storage.
    """

    def __init__(self, *, authenticate_directory: AuthenticateDirectory, use_cases: DirectoryUseCases) -> None:
        self._authenticate = authenticate_directory
        self._use_cases = use_cases
        self._service = DirectoryService(scim_provider())

    async def answer(
        self,
        *,
        method: str,
        base_url: str,
        path: str,
        query: Mapping[str, str],
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes,
    ) -> ScimAnswer:
        request = ScimRequest(
            method=method,
            base_url=base_url,
            path=path,
            query=query,
            headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers],
            body=body,
        )
        try:
            response = await self._response(request, headers)
        except SCIMException as error:
            response = self._service.error_response(_in_plain_words(error))
        content = b"" if response.body is None else json.dumps(response.body).encode()
        return ScimAnswer(status=int(response.status), body=content, headers=response.headers)

    async def _response(self, request: ScimRequest, headers: Sequence[tuple[bytes, bytes]]) -> ScimResponse:
        with self._service.provider:
            operation = self._service.match(request).operation
        if operation is Operation.service_provider_config:
            return self._service_config(request)
        storage = DirectoryStorage(await self._directory(headers), self._use_cases)
        return await AsyncScimHandler(self._service, storage).handle(request)

    def _service_config(self, request: ScimRequest) -> ScimResponse:
        with self._service.provider:
            return self._service.service_provider_config(request.url, request.query)

    async def _directory(self, headers: Sequence[tuple[bytes, bytes]]) -> IdentityProvider:
        try:
            return await self._authenticate.execute(bearer_token(headers))
        except ServiceError as error:
            if error.kind is ErrorKind.UNAUTHENTICATED:
                raise UnauthorizedException(detail="Send the token of an identity provider.") from error
            raise
