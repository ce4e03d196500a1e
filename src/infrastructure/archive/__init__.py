"""Files that hold what retention removes from the database."""
