"""Wake-ups: how those who follow a run learn that there is something to read."""
