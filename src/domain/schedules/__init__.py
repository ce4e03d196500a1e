"""Schedules: runs that begin by the clock."""
