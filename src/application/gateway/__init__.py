"""The gateway: tools, resources and prompts for external clients with a session token."""
