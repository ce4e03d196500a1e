"""Queues that ring workers for runs."""
