"""Words, languages and sentences of plain text."""
