"""Confinement of started processes: what they may read, write, call and use (ADR 0049)."""
