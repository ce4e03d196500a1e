"""The slices of the container: what each builds, naming what it takes from others. ADR 0029."""
