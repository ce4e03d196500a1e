"""Approvals of tool calls, and the timers that end them."""
