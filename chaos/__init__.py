"""`make chaos`: what must hold however often servers come, go and are killed."""
