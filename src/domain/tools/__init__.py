"""Tools: kinds, names, results."""
