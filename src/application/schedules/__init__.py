"""Use cases of the schedules slice."""
