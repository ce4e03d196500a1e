"""The worker: the loop that executes submitted runs, and the process that does nothing else."""
