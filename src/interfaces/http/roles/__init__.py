"""Roles over HTTP."""
