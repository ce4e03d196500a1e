"""Model providers over HTTP."""
