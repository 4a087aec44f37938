"""The features of a sentence."""
