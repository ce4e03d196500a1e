"""Sources of threads over HTTP."""
