"""Usage of models, and daily budgets."""
