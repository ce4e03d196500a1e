"""Agents and their versions."""
