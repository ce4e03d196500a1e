"""Named secrets over HTTP."""
