"""The orchestrations: `orchestrators` hands over to generators, and their effects are activities.

Activities import capabilities where they use them: a worker that only serves HTTP never pays for them.
"""
