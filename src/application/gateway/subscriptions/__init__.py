"""Subscriptions of gateway clients to changes, and their notifications."""
