"""Adapters of the Tracer port."""
