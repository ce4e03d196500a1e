"""Workflows: graphs of nodes, their compilation into plans, and the execution of plans."""
