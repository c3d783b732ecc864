"""`make chaos`: breaks everything that can break while people work, then checks the stores.

`world` defines what must be true afterwards; `load` works and `strikes` breaks by a round's seed; `checker`
reads tables, blobs and indexes with the plain SDKs, and imports nothing of the app.
"""
