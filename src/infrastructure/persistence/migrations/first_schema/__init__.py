"""The schema of revision 0031, a module for each slice. Frozen: a change is a new revision."""
