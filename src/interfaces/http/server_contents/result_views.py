"""What a server lists as its view."""

from application.gateway.contents.list_server_contents import ServerContents
from interfaces.http.server_contents.views import ServerContentsView


def server_contents_view(found: ServerContents) -> ServerContentsView:
    return {
        "resources": [*found.resources],
        "resource_templates": [*found.templates],
        "prompts": [*found.prompts],
    }
