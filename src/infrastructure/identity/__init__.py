"""OpenID Connect: metadata, keys, codes and signed tokens of identity providers."""
