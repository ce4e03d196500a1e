"""Extraction of text in killable child processes."""
