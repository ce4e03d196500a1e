"""How adapters are put together by the settings: plain functions that the container calls. Nothing here knows the injection library."""
