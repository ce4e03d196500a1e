"""The schema: revisions, upgrade, new databases, inspection."""
