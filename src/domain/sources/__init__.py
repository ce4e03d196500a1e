"""Sources of threads."""
