"""The checks behind `dragoman doctor`."""
