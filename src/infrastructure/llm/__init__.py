"""Adapters to language models: the wires of their providers, scripted models, retries, prices, routing."""
