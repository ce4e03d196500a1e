"""Use cases and the ports they call. Imports the standard library and the domain only."""
