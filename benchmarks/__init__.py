"""Measurements of Dragoman's cost, each against a floor measured in the same run. `make bench` runs
them."""
