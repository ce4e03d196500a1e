"""Foundations of the process: data directory, logs, clock, randomness, formats of settings."""
