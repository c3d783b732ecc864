"""Acceptance of quotations: labelled ones, and near misses derived from data sets."""
