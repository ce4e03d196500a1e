"""Runs as tasks of A2A 1.0 (https://a2a-protocol.org/v1.0.0/specification)."""
