"""One call of an outside client: decided, approved, sent, settled and answered."""
