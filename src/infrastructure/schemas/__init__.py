"""JSON Schema validation with bounded cost."""
