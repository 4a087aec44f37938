"""placeholder"""
from collections.abc import Sequence
def plain_prompt(question: str, passages: Sequence[str]) -> str:
    if not passages:
        return f"Question: {question}\nAnswer:\n"
    numbered = "\n".join(f"Passage {i}: {p}" for i, p in enumerate(passages, 1))
    return f"{numbered}\n\nQuestion: {question}\nAnswer:\n"
