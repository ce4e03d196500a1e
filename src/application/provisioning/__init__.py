"""People and groups that a company's directory manages by SCIM."""
