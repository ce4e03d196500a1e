"""Puts the documentation together for its site: the written pages, and references generated from
the code."""
