"""A bridge for editors: the Agent Client Protocol over stdin and stdout, on the service's HTTP
API."""
