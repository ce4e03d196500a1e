"""SQL adapters of the ports of the sources slice."""
