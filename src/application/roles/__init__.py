"""Custom roles of organizations."""
