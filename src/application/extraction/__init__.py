"""Getting the text out of documents that others wrote."""
