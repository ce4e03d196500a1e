"""Wake-up signals for streams and waits, and notifications of changed rows."""
