"""Connections to PostgreSQL that persistence and notifications share."""
