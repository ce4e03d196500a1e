"""Metrics of the whole service, for operators."""
