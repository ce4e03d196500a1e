"""Execution of a claimed run by a worker: turns, model calls, tool calls, and its end."""
