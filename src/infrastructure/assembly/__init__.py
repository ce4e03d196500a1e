"""Builds adapters from the settings: plain functions that the container calls, without the
injection library."""
