"""Use cases of the retention slice."""
