"""Groups that organizations manage themselves."""
