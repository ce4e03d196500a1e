"""Agents that gateway clients call as tasks."""
