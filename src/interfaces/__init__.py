"""Ways in: HTTP, gateway, command line and worker; each only calls use cases."""
