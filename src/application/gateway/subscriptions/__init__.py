"""Which changes a client of the gateway follows, and how it is notified."""
