"""Sending webhooks over HTTP."""
