"""What front-end protocols share: threads by the client's ids, and a run as what a chat shows."""
