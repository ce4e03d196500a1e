"""OAuth clients that people admit to the gateway: the authorization server of `/mcp`."""
