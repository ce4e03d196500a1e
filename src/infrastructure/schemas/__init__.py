"""JSON Schema checks of bounded cost."""
