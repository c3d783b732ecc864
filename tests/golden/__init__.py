"""Golden tests, which compare the event streams of complete questions byte for byte.

Each scenario asks through the HTTP API, with a scripted model and everything below the ports in memory. What
it streams is compared with a file of `streams/`. Nothing here knows how a run is carried out.
"""
