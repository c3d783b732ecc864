"""The orchestrations: `orchestrators` are generators, and all their effects are activities.

Activities import capabilities on use, so a worker that only serves HTTP doesn't load them.
"""
