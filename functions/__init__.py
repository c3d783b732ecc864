"""Azure Functions triggers, one module per resource. Each parses its input, calls the application code and
sends the reply. Code shared by HTTP routes is in `http`.
"""
