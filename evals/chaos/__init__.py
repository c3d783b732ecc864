"""`make chaos`: everything that can break breaks while people work, and a checker reads what is left.

`world` holds what must be true afterwards, `load` works and `strikes` breaks by a round's seed, and `checker`
reads tables, blobs and indexes by the plain SDKs. It imports nothing of the app.
"""
