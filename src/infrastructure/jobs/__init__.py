"""Queues that signal runs to workers."""
