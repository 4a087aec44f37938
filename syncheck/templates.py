"""The words of the prompts, with the passages and without: plain, RAGTruth's three tasks, and biographies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nltk.tokenize.punkt import PunktSentenceTokenizer

__all__ = [
    "biography_prompt",
    "first_sentence",
    "plain_prompt",
    "ragtruth_data2txt_prompt",
    "ragtruth_qa_prompt",
    "ragtruth_summary_prompt",
]

_COUNT_WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}
UNANSWERABLE = "Unable to answer based on given passages."
REVIEWS = "review_info"
"""Key of the customers' reviews in RAGTruth's business records."""


def plain_prompt(question: str, passages: Sequence[str]) -> str:
    """Write the prompt for a model without a chat template; no passages leaves the question alone."""
    numbered = "\n".join(f"Passage {i}: {passage}" for i, passage in enumerate(passages, 1))
    return (f"{numbered}\n\n" if passages else "") + f"Question: {question}\nAnswer:\n"


def ragtruth_qa_prompt(question: str, passages: Sequence[str]) -> str:
    """Write RAGTruth's QA prompt; no passages gives its question-only counterpart."""
    if not passages:
        return f"Briefly answer the following question:\n{question}\noutput:"
    numbered = "\n\n".join(f"passage {i}:{passage}" for i, passage in enumerate(passages, 1))
    count = _COUNT_WORDS.get(len(passages), str(len(passages)))
    noun = "passage" if len(passages) == 1 else "passages"
    return (
        f"Briefly answer the following question:\n{question}\n"
        f"Bear in mind that your response should be strictly based on the following {count} {noun}:\n"
        f"{numbered}\n\nIn case the passages do not contain the necessary information to answer the question, "
        f'please reply with: "{UNANSWERABLE}"\noutput:'
    )


def ragtruth_summary_prompt(instruction: str, article: str) -> str:
    """Write RAGTruth's prompt for a summary; its counterpart has :func:`first_sentence` of the article for the article.

    Parameters
    ----------
    instruction
        One line: ``Summarize the following news within 60 words:``.
    article
        The text to summarise.
    """
    return f"{instruction}\n{article}\noutput:"


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, by NLTK's untrained Punkt; a blank text gives ``""``.

    Notes
    -----
    The published code asks NLTK's English model, which has to be downloaded; this one ends at an abbreviation.
    """
    text = text.strip()
    return next((text[start:end] for start, end in PunktSentenceTokenizer().span_tokenize(text)), "")


def ragtruth_data2txt_prompt(record: Mapping[str, Any], *, reviews: bool = True) -> str:
    """Write RAGTruth's prompt for an overview of a business.

    Parameters
    ----------
    record
        The business: ``name``, ``address``, ``hours``, ``attributes``, ``review_info`` and so on.
    reviews
        False gives the counterpart of the published code: the record without ``review_info``, in a shorter prompt.

    Notes
    -----
    The corpus calls the data JSON and writes Python's notation: single quotes, ``True``, ``None``. So does this.
    """
    opening = (
        "Instruction:\nWrite an objective overview about the following local business based only on the provided "
        "structured data in the JSON format."
    )
    if not reviews:
        return f"{opening}\n{ {k: v for k, v in record.items() if k != REVIEWS} }\noutput:"
    return (
        f"{opening} You should include details and cover the information mentioned in the customers' review. The "
        "overview should be 100 - 200 words. Don't make up information.\n"
        f"Structured data:\n{dict(record)}\nOverview:"
    )


def biography_prompt(question: str, passages: Sequence[str]) -> str:
    """Write the published code's prompt for a biography; no passages gives its counterpart, the instruction only.

    Parameters
    ----------
    question
        ``Tell me a bio of Ada Lovelace.``
    passages
        Each a title, a new line and a text.
    """
    if not passages:
        return f"### Instruction:\n{question}\n\n### Response:\n"
    numbered = "\n".join(f"[{i}] {passage}" for i, passage in enumerate(passages, 1))
    return (
        "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
        f"### Paragraph:\n{numbered}\n\n### Instruction:\n{question}\n\n### Response:"
    )
