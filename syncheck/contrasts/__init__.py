"""Contrasts: how a sentence contradicts what the evidence says, found word by word by rules."""
