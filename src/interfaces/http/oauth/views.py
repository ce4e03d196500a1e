"""Identity providers of the command line as JSON."""

from typing import Annotated, TypedDict

from interfaces.http.view_fields import Items


class CliProviderView(TypedDict):
    """An identity provider where people may sign in to the command line."""

    name: Annotated[str, "Name of the identity provider."]
    issuer: Annotated[str, "Issuer URL (OpenID Connect)."]
    client_id: Annotated[str, "Id of the public client of the command line."]
    scopes: Annotated[list[str], "Scopes that a sign-in requests."]


class CliProviderList(TypedDict):
    """Identity providers of the command line."""

    data: Items[CliProviderView]
