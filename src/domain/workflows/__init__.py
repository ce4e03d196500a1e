"""Workflows: graphs of nodes, their compilation into plans, and how a plan is executed."""
