"""`dragoman whoami`: the person or the API key behind this command's requests."""

import typer

from interfaces.cli.api import path_to
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.users.views import CallerView


def whoami(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Show who you are for the service. That is a person or an API key, with organization and role,
    and until when. The command line renews the token of a person who has signed in."""
    session = session_of(context)

    def display(caller: CallerView) -> None:
        role = caller["custom_role"] or caller["role"]
        name = f"{caller['name']} ({caller['id']})" if caller["name"] else caller["id"]
        session.terminal.fields(
            {
                "person" if caller["kind"] == "user" else "API key": name,
                "e-mail": caller["email"] or "",
                "organization": f"{caller['organization_name']} ({caller['organization_id']})",
                "role": f"{role}, platform" if caller["platform"] else role,
                "permissions": ", ".join(caller["permissions"]) or "reads only",
                "signed in at": caller["issuer"] or "",
                "valid until": caller["expires_at"] or "it is revoked",
            }
        )

    session.show(CallerView, lambda api: api.get(path_to("whoami")), display, as_json=as_json)
