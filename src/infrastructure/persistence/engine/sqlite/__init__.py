"""SQLite: the writer, commits on the event loop, WAL checkpoints, backup."""
