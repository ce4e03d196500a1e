"""The authorization server of the gateway over HTTP: metadata, registration, tokens."""
