"""Where the console is, for those who link to it."""

PATH = "/console"
SIGN_IN_PATH = f"{PATH}/sign-in"


def browsable(url: str) -> str:
    """A service's address as a browser on the same machine takes it, if it listens on all
    addresses."""
    return url.replace("://0.0.0.0", "://127.0.0.1").replace("://[::]", "://[::1]")
