"""Resources, prompts and completion of the servers behind a gateway session."""
