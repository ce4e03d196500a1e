"""Outbound HTTP and its egress guard."""
