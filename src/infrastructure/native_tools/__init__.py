"""Tools that Dragoman itself brings."""
