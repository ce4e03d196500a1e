"""The tools of a gateway session, under the names of its client."""
