"""The commands, a file for each group; what they load beyond typer they load when they run."""
