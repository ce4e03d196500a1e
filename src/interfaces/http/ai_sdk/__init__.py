"""The UI message stream of the AI SDK over threads, runs and their events, at `/ai-sdk/v1`."""
