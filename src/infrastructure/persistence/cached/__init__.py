"""Stores that keep rows in memory until a notification invalidates them."""
