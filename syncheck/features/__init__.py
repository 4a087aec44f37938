"""Features of a sentence."""
