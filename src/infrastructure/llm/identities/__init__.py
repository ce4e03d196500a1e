"""Identities of calls to models in clouds: access tokens of Google Cloud and Microsoft Entra."""
