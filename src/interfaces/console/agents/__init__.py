"""Pages of agents: what forms hold, what changed between versions, and the routes."""
