"""What processes share of limits: rates of calls, and permits. ADR 0081."""
