"""Usage of models per day."""
