"""Reports as HTML pages that need no other file, fetch nothing, and run no script but their own.

All texts and measures are laid out here; the templates only write and colour them.
"""

from __future__ import annotations

import base64
import hashlib
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from syncheck.base.checks import names_of
from syncheck.base.printable import counted
from syncheck.base.records import RefusedRecord
from syncheck.features.schemas import LARGE_KL_NATS
from syncheck.reading.tags import quotation
from syncheck.report import labels as wording
from syncheck.report.labels import VERDICTS, ShadeView, answer_facts, decimal, feature_label, feature_value, shades_of
from syncheck.results.report import Answer, Case
from syncheck.results.types import Citation, SentenceScore, TokenSignals
from syncheck.spans.words import reading_direction

_DARKEST_KL_NATS = 2 * LARGE_KL_NATS
_WEIGHTIEST = 5  # signals that are shown without unfolding
_SMALLEST_LONGEST_BAR = 0.5  # contribution, in nats of log-odds, that fills a bar, however small all are
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

Link = tuple[str, str]
"""Label and anchor of a sentence."""


def render_html(
    cases: Sequence[Case],
    *,
    title: str = "Faithfulness report",
    refused: Sequence[RefusedRecord] = (),
    prefix: str = "",
) -> str:
    """Draw questions with their answers side by side as a complete HTML page.

    Each sentence is coloured by its score and also has the score, a pattern and a word, so that it can be read without
    colour and in print; its signals, tokens and evidence unfold. All text is escaped.

    Parameters
    ----------
    cases
        Questions with their answers; an empty sequence gives a page that says so.
    title
        Heading of the page.
    refused
        Records that could not be used: the page counts them at the top and lists them, with reasons, at the end.
    prefix
        Prefix of all anchors, which makes the result a fragment of a page.

    Returns
    -------
    str
        The page, or the fragment, in HTML.
    """
    answers = [answer for case in cases for answer in case.answers]
    used = {s.verdict for answer in answers for s in (*answer.report.sentences, *answer.dropped)}
    features = dict.fromkeys(name for answer in answers for s in answer.report.sentences for name in s.features)
    # A monitor whose two thresholds are equal calls no sentence doubtful.
    legend = {v: meaning for v, meaning in reversed([*VERDICTS.items()]) if v != "doubtful" or v in used}
    return _render(
        "body.html.j2",
        prefix,
        title=title,
        cases=[case_view(case, number, prefix=prefix) for number, case in enumerate(cases, 1)],
        refused=refused,
        legend=legend,
        glossary=[feature_label(name) for name in features],
        opened=any(answer.report.spans is not None for answer in answers),
    )


def render_fragment(cases: Sequence[Case]) -> str:
    """Draw cases as :func:`render_html` does, as a fragment for a notebook whose style affects nothing outside it."""
    # The prefix keeps the anchors of several fragments in one notebook apart.
    digest = zlib.crc32(render_html(cases, title="").encode(errors="backslashreplace"))
    return render_html(cases, title="", prefix=f"r{digest:08x}-")


def render_label_page(data: Mapping[str, Any], *, name: str, title: str = "Label sentences") -> str:
    """Draw a page on which people label sentences; it contains its script, and fetches and sends nothing.

    ``data`` has ``records`` in the labelled format; ``open``, the sentences to label, in order, each with ``response``
    and ``sentence`` (indices), ``before``, ``text``, ``after`` and ``evidence``; ``whole``, true if all records are
    saved and not only those with a label; ``key``, by which the browser keeps the labels of each page apart. ``name``
    is that of the file.
    """
    return _templates().get_template("label.html.j2").render(data={**data, "name": name}, name=name, title=title)


def render_page(body: str, *, script: str, **values: object) -> str:
    """Draw a page with a script; the page's policy names the script's digest, so that no other script runs."""
    code = _templates().get_template(script).render()
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return _render(body, "", policy=f"{_POLICY}; script-src 'sha256-{digest}'", script=Markup(code), **values)  # noqa: S704


def _render(body: str, prefix: str, *, policy: str = _POLICY, **values: object) -> str:
    """Draw a page or, where its anchors have a prefix, a fragment of one."""
    template = _templates().get_template("fragment.html.j2" if prefix else "page.html.j2")
    return template.render(body=body, prefix=prefix, policy=policy, **values)


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    named = "citation_verdicts citation_words contrast_lines decimal message_label message_of no_answer tint"
    environment.filters |= {name: getattr(wording, name) for name in [*named.split(), "verdict", "why"]}
    environment.filters |= {"direction": reading_direction, "counted": counted, "quotation": quotation}
    return environment


def case_view(case: Case, number: int, *, prefix: str) -> dict[str, Any]:
    """Lay out a case, its passages cut where evidence begins and ends, and the sentences that cite each of them.

    ``prefix`` keeps the anchors of several pages in one document apart.
    """
    anchor = f"{prefix}q{number}"
    answers = [_answer_view(a, f"{anchor}a{i}") for i, a in enumerate(case.answers, 1)]
    spans: list[list[tuple[int, int, Link]]] = [[] for _ in case.passages]
    citing: list[dict[Link, None]] = [{} for _ in case.passages]
    for name, view in ((drawn["answer"].label, view) for drawn in answers for view in drawn["sentences"]):
        label, target, scored = f"{name} {view['number']}", view["anchor"], view["scored"]
        if (evidence := scored.evidence) is not None and (quote := evidence.text.strip()):
            start = case.passages[evidence.passage].find(quote)
            if start >= 0:
                spans[evidence.passage].append((start, start + len(quote), (label, target)))
        for cited in scored.citations:
            if cited.passage is not None:
                citing[cited.passage][f"{label}, {cited.status}", target] = None
    named = [names_of(passage) for passage in case.passages]
    return {
        "anchor": anchor,
        "question": case.question,
        "answers": answers,
        "passages": [mark_passage(passage, marks) for passage, marks in zip(case.passages, spans, strict=True)],
        "names": [" · ".join(part for part in (one.title or one.id, one.url) if part) for one in named],
        "citing": citing,
    }


def mark_passage(passage: str, spans: Iterable[tuple[int, int, Link]]) -> list[dict[str, Any]]:
    """Cut a passage at half-open spans of evidence, each with its label and anchor; spans may overlap.

    Each piece has the ``refs`` that it is evidence for, and, as ``ends``, those of them whose evidence ends there.
    """
    marks = sorted(spans, key=lambda mark: mark[:2])
    borders = sorted({0, len(passage), *(border for start, stop, _ in marks for border in (start, stop))})
    return [
        {
            "text": passage[left:right],
            "refs": [ref for start, stop, ref in marks if start <= left and right <= stop],
            "ends": [ref for _, stop, ref in marks if right == stop],
        }
        for left, right in pairwise(borders)
    ]


def _answer_view(answer: Answer, anchor: str) -> dict[str, Any]:
    """Lay out an answer; its ``dropped`` sentences are those taken back after its last one."""
    report, lowest = answer.report, answer.report.lowest
    changes = [abs(change) for s in report.sentences for change in s.attribution.values()]
    longest = max([*changes, _SMALLEST_LONGEST_BAR])
    views: list[dict[str, Any]] = []
    after: tuple[SentenceScore, ...] = ()
    for number, (sentence, dropped) in enumerate(answer.timeline, 1):
        if sentence is None:
            after = dropped
            continue
        weighty = sorted(sentence.features, key=lambda name: -abs(sentence.attribution.get(name, 0.0)))
        if sentence.attribution:
            del weighty[_WEIGHTIEST:]
        shades: tuple[ShadeView, ...] = ()
        if report.spans is not None and sentence.verdict != "supported" and sentence.start < sentence.end:
            shades = shades_of(report.response, report.spans, start=sentence.start, stop=sentence.end)
        view = {
            "scored": sentence,
            "anchor": f"{anchor}s{number}",
            "number": number,
            "is_lowest": sentence is lowest,
            "unfolded": sentence is lowest and sentence.verdict != "supported",
            "pieces": _pieces(sentence),
            "shades": shades,
            "signals": _signals(sentence, weighty, longest),
            "more_signals": _signals(sentence, [name for name in sentence.features if name not in weighty], longest),
            "tokens": list(_token_views(report.tokens, sentence.token_start, sentence.token_end)),
            "dropped": dropped,
        }
        views.append(view)
    return {
        "answer": answer,
        "lowest": lowest,
        "anchor": anchor,
        "facts": answer_facts(answer),
        "sentences": views,
        "dropped": after,
    }


def _pieces(sentence: SentenceScore) -> list[tuple[str, Citation | None]]:
    """Cut a sentence at its citation marks, each with its first citation that names a passage, if any."""
    text, marks = sentence.text, dict[tuple[int, int], Citation]()
    for cited in sorted(sentence.citations, key=lambda one: (one.start, one.passage is None)):
        marks.setdefault((cited.start - sentence.start, cited.end - sentence.start), cited)
    borders = sorted({0, len(text), *(border for mark in marks for border in mark)})
    return [(text[a:b], marks.get((a, b))) for a, b in pairwise(borders)]


def _signals(sentence: SentenceScore, names: Iterable[str], longest: float) -> list[dict[str, Any]]:
    """Lay out features, each with its contribution to the log-odds and its bar, in percent of the longest."""
    changes = sentence.attribution
    return [
        {
            "name": name,
            "meaning": feature_label(name).meaning,
            "value": feature_value(name, sentence.features[name]),
            "change": f"{changes[name]:+.2f}".replace("-", "−") if name in changes else "",
            "pulls_down": changes.get(name, 0.0) < 0,
            "width": round(100 * abs(changes.get(name, 0.0)) / longest, 1),
        }
        for name in sorted(names, key=lambda name: changes.get(name, 0.0))
    ]


def _token_views(tokens: TokenSignals, first: int | None, end: int | None) -> Iterator[dict[str, Any]]:
    """Yield the tokens of a sentence; none if it has none, or nothing was measured.

    ``shade`` is the KL relative to the darkest, in [0, 1], and ``probability`` is in percent.
    """
    if first is None or end is None or np.isnan(tokens.log_prob[first:end]).all():
        return
    for i in range(first, end):
        start, stop = tokens.char_spans[i].tolist()
        text = tokens.text[start:stop].replace("\n", "⏎")
        log_prob, kl = float(tokens.log_prob[i]), float(tokens.kl[i])
        yield {
            "text": text or f"id {int(tokens.token_ids[i])}",
            "visible": bool(text),
            "log_prob": decimal(log_prob, digits=1),
            "kl": decimal(kl, digits=1),
            "shade": 0.0 if math.isnan(kl) else round(min(kl / _DARKEST_KL_NATS, 1.0), 3),
            "probability": 0.0 if math.isnan(log_prob) else round(100 * math.exp(log_prob), 1),
            "large_kl": kl > LARGE_KL_NATS,
        }
