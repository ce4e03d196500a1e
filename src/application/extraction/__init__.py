"""Extraction of text from untrusted documents."""
