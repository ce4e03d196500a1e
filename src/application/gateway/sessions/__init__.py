"""Gateway sessions and their clients: opened, recognised by their token, ended."""
