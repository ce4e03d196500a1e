"""Entities, value objects and pure decisions; standard library only, no I/O."""
