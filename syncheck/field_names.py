"""What a message says of a record that lacks a field: which it has, and what those of other tools are called here."""

from __future__ import annotations

from collections.abc import Collection, Mapping

__all__ = ["fields_found"]

_CALLED_HERE: Mapping[str, str] = {
    "answer": "response",
    "completion": "response",
    "context_list": "context",
    "contexts": "context",
    "documents": "context",
    "generated_answer": "response",
    "input": "question",
    "instruction": "question",
    "output": "response",
    "passages": "context",
    "prediction": "response",
    "prompt": "question",
    "query": "question",
    "reference_contexts": "context",
    "retrieved_contexts": "context",
    "source_documents": "context",
    "user_input": "question",
}
"""Ragas has ``user_input``, ``retrieved_contexts`` and ``response``, before 0.2 ``question``, ``contexts`` and
``answer``; LettuceDetect ``context``, ``question`` and ``answer``, in its data ``prompt`` and ``answer``."""
_SHOWN = 12


def fields_found(name: str, found: Collection[str]) -> str:
    """Return which fields a record has that lacks this one, and which of them to rename."""
    others = [other for other in found if other != name]
    listed = ", ".join(map(repr, others[:_SHOWN])) + (", ..." if len(others) > _SHOWN else "")
    renamed = {other: wanted for other in others if (wanted := _CALLED_HERE.get(other)) and wanted not in others}
    remedy = ", ".join(f"{other!r} to {wanted!r}" for other, wanted in renamed.items())
    return f"found {listed or 'no other field'}" + (f"; rename {remedy}" if remedy else "")
