"""Webhooks: deliveries of run events, their signatures and retries."""
