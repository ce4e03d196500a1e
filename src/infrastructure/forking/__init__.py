"""Killable child processes for work that users can make expensive."""
