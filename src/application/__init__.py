"""Use cases and the ports they call; standard library and `domain` only."""
