"""Redirects from authorization servers, over HTTP."""
