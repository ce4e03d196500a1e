"""Use cases of the sources slice."""
