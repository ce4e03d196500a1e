"""All organizations over HTTP, for platform keys."""
