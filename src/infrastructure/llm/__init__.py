"""Adapters to language models: wire formats of providers, scripted models, retries, prices,
routing."""
