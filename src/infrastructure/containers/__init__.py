"""The container in slices: providers of each slice, with names of providers of others. ADR 0029."""
