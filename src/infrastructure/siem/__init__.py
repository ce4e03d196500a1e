"""Audit entries for a SIEM: OCSF events over HTTP or syslog."""
