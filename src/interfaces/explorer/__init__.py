"""The API explorer at `/docs`: Swagger UI from the service's own files."""
