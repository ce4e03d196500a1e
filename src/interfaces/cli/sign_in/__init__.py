"""Signing in to a service from the command line: flows, stored tokens, their renewal."""
