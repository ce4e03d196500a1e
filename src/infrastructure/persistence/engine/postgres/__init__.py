"""PostgreSQL: the pool, pipelined groups, roles, the schema of the job queue."""
