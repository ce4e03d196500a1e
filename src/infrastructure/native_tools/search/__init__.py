"""Search providers behind internet_search."""
