"""Workflows over HTTP."""
