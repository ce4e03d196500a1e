"""Servers in containers (kind `oci`): the port of container engines, its adapter, and the life of
one server."""
