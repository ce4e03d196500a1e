"""Columns, paging and JSON text that several stores share."""
