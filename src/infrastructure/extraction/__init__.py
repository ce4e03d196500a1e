"""Extraction of text in child processes that can be killed."""
