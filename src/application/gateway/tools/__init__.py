"""The tools of a gateway session and the names under which its client knows them."""
