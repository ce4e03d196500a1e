"""Webhooks: what is announced to whom, how it is signed, and when it is tried again."""
