"""SCIM 2.0 (RFC 7643, RFC 7644): directories manage people and groups."""
