"""Golden tests, which compare the event streams of complete questions byte for byte.

Each scenario sends questions to the HTTP API, with a scripted model and all ports in memory. The resulting
stream is compared with a file in `streams/`. The tests don't depend on how a run is executed.
"""
