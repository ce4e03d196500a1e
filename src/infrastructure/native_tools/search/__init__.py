"""Search providers for internet_search."""
