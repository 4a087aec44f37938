"""Contrasts: what contradicts an English sentence, in words to show."""
