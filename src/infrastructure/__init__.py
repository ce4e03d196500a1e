"""Adapters behind the application's ports, settings, the container and the lifecycle."""
