"""Runs: state machine, limits, usage, events and the tool ledger."""
