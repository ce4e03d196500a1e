"""What a worker does with a claimed run: turns, model calls, tool calls, and its end."""
