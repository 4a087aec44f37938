"""Measured sentences without a model: answers of two sentences, the second of which is unfaithful."""

import numpy as np

from syncheck import SegmenterConfig
from syncheck.labelling import LabelledResponse, UnfaithfulSpan
from syncheck.training import MeasuredSentences


def yes_and_no(schema, values, *, prefix="r", answers_per_question=1, implicit_true=(), **given):
    """Answers "Yes. No." by the models m and n in turn, without activations.

    ``values`` has the rows of one answer behind those of the one before; ``implicit_true`` are answers whose span is
    marked as true of the world; ``given`` are fields of all responses.
    """
    count = len(values) // 2
    return MeasuredSentences(
        schema=schema,
        values=values,
        activations={},
        bounds=np.array([[0, 4], [5, 8]] * count),
        texts=("Yes.", "No.") * count,
        owners=np.repeat(np.arange(count), 2),
        records=tuple(
            LabelledResponse(
                f"{prefix}{i}",
                f"{prefix}q{i // answers_per_question}?",
                ("p",),
                "Yes. No.",
                f"{prefix}g{i // answers_per_question}",
                "mn"[i % 2],
                spans=(UnfaithfulSpan(5, 8, implicit_true=i in implicit_true),),
                **given,
            )
            for i in range(count)
        ),
        left_out={},
        segmenter=SegmenterConfig(),
    )
