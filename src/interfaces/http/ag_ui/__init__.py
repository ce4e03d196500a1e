"""AG-UI 1.0 over threads, runs and their events, at `/ag-ui/v1`."""
