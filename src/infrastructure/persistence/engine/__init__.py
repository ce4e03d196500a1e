"""Units of work on the database: group commit on SQLite, pipelined groups on PostgreSQL."""
