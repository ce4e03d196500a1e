"""Models over the classes of pydantic-ai, loaded on first use (ADR 0061). The only folder that
imports it, and the SDKs below it."""
