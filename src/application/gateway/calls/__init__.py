"""One tool call of an external client: decided, approved, sent, settled and answered."""
