"""Storage in SQL: one schema and one set of stores over SQLite and PostgreSQL."""
