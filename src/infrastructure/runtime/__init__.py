"""What the process stands on: data directory, logs, clock, randomness, formats of settings."""
