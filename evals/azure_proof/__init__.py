"""Proof kit for deployments: deploys the app, tests it, records evidence, and deletes everything again.

`python -m evals.azure_proof` uses an Azure subscription, `--local` a separate local stack. Steps use only the
app's HTTP API; platform-specific operations are in `azure.py` and `local_target.py`.
"""
