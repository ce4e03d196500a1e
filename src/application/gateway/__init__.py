"""The gateway: what outside clients may reach with a session's token, and how their calls are made."""
