"""A2A 1.0 over threads, runs and their events, at `/a2a/v1`."""
