"""Inbound adapters: HTTP, gateway, command line and worker. Each only calls use cases."""
