"""The commands, one file per group. Each loads its dependencies when it runs."""
