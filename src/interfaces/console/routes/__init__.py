"""The console's routes, by page."""
