"""Parts for every slice: time, identifiers, signals, bounded caches and loops."""
