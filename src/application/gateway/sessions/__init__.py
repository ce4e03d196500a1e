"""Gateway sessions and their clients: opened, authenticated by token, ended."""
