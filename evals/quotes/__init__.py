"""Evaluation of the app's quotation check with labelled quotations and generated near misses."""
