"""Sends webhooks over HTTP."""
