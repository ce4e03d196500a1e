"""Dragoman's built-in tools."""
