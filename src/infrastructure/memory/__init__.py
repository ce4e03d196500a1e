"""In-memory adapters of the ports: for use-case tests and for the contract suites. Nothing outside the process."""
