"""Baselines of faithfulness-oriented decoding, each called as it is."""
