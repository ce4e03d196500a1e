"""The surroundings every slice needs: time and identifiers."""
