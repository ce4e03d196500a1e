"""Runs of workflows over HTTP."""
