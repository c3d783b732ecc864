"""Event streams of whole questions, byte for byte as readers get them.

Each scenario asks through the HTTP API, with a scripted model and everything below the ports in memory. What
it streams is compared with a file of `streams/`. Nothing here knows how a run is carried out.
"""
