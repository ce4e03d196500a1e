"""Schedules: runs that start at times given by cron expressions."""
