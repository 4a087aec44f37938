"""Baselines of faithfulness-oriented decoding, all called in the same way."""
