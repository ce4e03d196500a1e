"""The console: web pages for people, over the use cases."""
