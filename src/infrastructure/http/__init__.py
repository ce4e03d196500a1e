"""HTTP requests that leave the service, and the egress guard on them."""
