"""Calls of language models: requests, replies, prices."""
