"""Schedules over HTTP."""
