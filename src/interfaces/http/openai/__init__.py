"""OpenAI's protocols over threads, runs and their events, at `/openai/v1`."""
