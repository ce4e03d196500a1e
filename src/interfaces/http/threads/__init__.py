"""Threads and their messages over HTTP."""
