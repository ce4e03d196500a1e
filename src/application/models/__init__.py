"""Calling language models: the request, the reply, prices."""
