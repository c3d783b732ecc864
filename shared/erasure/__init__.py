"""Erasing a thread or a person. It knows every store, so it stands near the top."""
