"""Encryption at rest, its keys, and the redaction of secrets."""
