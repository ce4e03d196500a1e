"""Named secrets."""
