"""The proof kit: deploys the app, puts it to the test, writes down what it saw, and removes everything again.

`python -m evals.azure_proof` works on an Azure subscription, `--local` on a local stack of its own. Each step
asks the app over HTTP only; what depends on the platform is in `azure.py` and `local_target.py`.
"""
