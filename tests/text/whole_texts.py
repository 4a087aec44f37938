"""What the segmenter must find, said of a whole text with regular expressions and NLTK; texts and configs to try."""

import re
from itertools import pairwise

from hypothesis import strategies as st
from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

from syncheck.text.sentences import IncrementalSegmenter
from syncheck.text.sentences.boundaries import SegmenterConfig

NO_LIMIT = 10_000
UNBOUNDED = SegmenterConfig(max_tokens=NO_LIMIT)
OPTIONS = {
    "default": {},
    "abbreviations": {"abbreviations": ("Dr.", "U.S.", "No.#")},
    "often last": {"abbreviations": ("p.m.~", "Dr.", "Etc.~")},
    "paragraphs": {"line_breaks": "paragraphs"},
    "lists": {"line_breaks": "lists"},
    "lines": {"line_breaks": "lines"},
    "cjk": {"cjk_stops": True},
    "clauses": {"clauses": True},
    "pairs": {"sentences": 2},
    "lists, cjk, pairs": {"line_breaks": "lists", "cjk_stops": True, "sentences": 2},
    "all": {"abbreviations": ("Dr", "no.#"), "line_breaks": "lists", "cjk_stops": True, "clauses": True},
    "all, lines, three": {
        "abbreviations": ("u.s",),
        "line_breaks": "lines",
        "cjk_stops": True,
        "clauses": True,
        "sentences": 3,
    },
}

_CLOSERS = "[\"')\\]}\u2019\u201d\xbb」）]"
_ITEM = re.compile(
    r"""(?:(?:[-*\u2022]|\#{1,6})[ \t]+)*
    (?:(?:[-*\u2022]|\#{1,6}|(?:\d{1,3}|[a-z])[.)]|[A-Z]\)|\((?:\d{1,3}|[A-Za-z])\))\s|\d{1,3}[．、）])""",
    re.VERBOSE,
)
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t].*$", re.MULTILINE)
_AFTER_UNIT = re.compile(r"(?<=\d\s[a-z]\.)[ \t\n\r\f\v]+(?=[^\W\d_])")
_CJK = re.compile(rf"(?:[。！？]|(?<![0-9A-Za-z])．)(?:[。！？．.?!]|{_CLOSERS})*+\s*+(?=\S)")
_CLAUSE = re.compile(rf"(?<!\.)(?:[,;:](?={_CLOSERS}*\s)|，){_CLOSERS}*+\s*+(?=\S)")


_SIGN = r"(?<=[.,;:!?\"')\]\u201d】])(?:[†]+|[¹²]+)(?![^\W_])"
_ADDRESS = r"https?://(?:[^\s<>()\[\]\"\u2e80-\uffef]|\([^\s<>()]*\))+(?<![.,;:!?'\u201d])"
_LINK = rf"(?:\[[^\[\]\n]{{1,80}}\]\([^\s<>()]+\)|{_ADDRESS})"
_CITED = (
    rf"(?:{_LINK}|\[[^\[\]\n]{{1,80}}\]|【\d(?:†[^【】\n]{{0,80}})?】|\([A-Z][a-z]+, \d{{4}}\)|\({_LINK}\)"
    rf"|\((?![A-Za-z0-9]{{1,3}}\))[^().!?\n]{{1,80}}\)|\(Source:[^()\n]{{1,120}}\)|{_SIGN})"
)
_SOURCE = rf"Sources?:[ \t]*(?:{_LINK}|[^\s.!?][^\n.!?]{{0,100}})(?:\.(?=\s|$)|(?=\n|$))"
_MARKS = re.compile(rf"(?:[ \t\u00a0]*(?:{_CITED}+\.?|{_SOURCE})(?=\s*\Z|\s+[^\sa-z]|東))+")
_STUCK = re.compile(
    rf"(?<!\n\d)[.?!][\"')\]\u201d]*"
    rf"(?:(?:【\d(?:†[^【】\n]{{0,80}})?】|†+|[¹²]+)+|[ \t\u00a0]+{_ADDRESS})(\s+)(?=[^\sa-z])"
)


_KEY_VALUE = re.compile(r"[ \t]*(?:\*\*|__)?[^\W_][^:.?!|\n]{0,40}:(?:\*\*|__)?[ \t]+\S")
_JSON_VALUE = re.compile(r'[\s\[\]{},]*"(?:[^"\\\n]|\\.){1,80}"\s*:')
_NEVER_LAST = re.compile(r"[(\[](?!(?:yes|no|ok)\.)[a-z]{1,6}\.$", re.IGNORECASE)
_INITIAL = re.compile(r"(?<!\w)[A-Z]\.(\)?)$")


def _behind_emphasis(text, stop, after):
    """Move a boundary without white space behind marks of Markdown that end what is in bold."""
    marks = re.compile(r"[*_]{1,3}(?=\s|\Z)").match(text, stop) if stop == after and text[stop - 1] in ".!?" else None
    return (stop, after) if marks is None else (marks.end(), _word(text, marks.end()))


def reference(text, **options):
    """Where the sentences of a whole text are, as characters without the white space around them."""
    if not text.strip():
        return []
    boundaries = []
    has_items = options.get("line_breaks") in ("lists", "lines")
    starts = _with_values(text, [0, *sorted(_breaks(text, options)), len(text)], options)
    inner = 0  # behind the mark of an item
    for start, stop in pairwise(starts):
        visible = start + len(text[start:stop]) - len(text[start:stop].lstrip())
        item = _ITEM.match(text, visible) if has_items and _starts_line(text, visible) else None
        inner = _word(text, item.end() if item else visible) if item or text[:start].strip() else inner
        if text[inner:stop].strip():
            block = text[inner:stop].rstrip() + " Next" if stop < len(text) else text[inner:]
            is_row = has_items and text[inner:].lstrip().startswith("|")
            spans = [] if is_row else list(_punkt(options).span_tokenize(block))
            boundaries += [
                (inner + a, inner + b)
                for (_, a), (b, _) in pairwise(spans)
                if block[b:] != "Next" and not _goes_on(block, a, b, options)
            ]
            if options.get("abbreviations") and not is_row:
                boundaries += [
                    (inner + m.start(), inner + m.end())
                    for m in _AFTER_UNIT.finditer(block)
                    if block[m.end()].isupper() and block[m.end() :] != "Next"
                ]
            boundaries = sorted({*boundaries, (stop, stop)})
            inner = stop
    if options.get("line_breaks") == "lists":
        boundaries = list(_behind_marks(text, boundaries, starts))
    if options.get("abbreviations"):
        boundaries = [_behind_emphasis(text, *boundary) for boundary in boundaries]
    boundaries = [(stop, after) for stop, after in boundaries if text[after:].strip()]
    size = options.get("sentences", 1)
    found, start = [], 0
    for stop, after in [*boundaries[size - 1 :: size], (len(text), len(text))]:
        piece = text[start:stop]
        found.append((start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())))
        start = after
    return found


def _breaks(text, options):
    """Characters at which a sentence starts whatever Punkt says."""
    mode = options.get("line_breaks", "none")
    headings = [m.end() for m in _HEADING.finditer(text)] if mode == "lists" else []
    for gap in re.finditer(r"\s+(?=\S)", text):
        lines = gap[0].count("\n")
        least = {"none": len(text), "paragraphs": 2, "lists": 2, "lines": 1}[mode]
        after_heading = lines and any(gap.start() <= end <= gap.end() for end in headings)
        if mode == "lists" and lines and (_ends_row(text, gap) or _ends_item(text, gap)):
            yield gap.end()
        if lines >= least or (mode == "lists" and lines and (after_heading or _ITEM.match(text, gap.end()))):
            yield gap.end()
    if mode == "lists":
        yield from (m.end() for m in _STUCK.finditer(text))
    if options.get("cjk_stops"):
        yield from (m.end() for m in _CJK.finditer(text))
    if options.get("clauses"):
        for clause in _CLAUSE.finditer(text):
            if not (text[max(clause.start() - 1, 0)].isdigit() and text[clause.end()].isdigit()):
                yield clause.end()


def _behind_marks(text, boundaries, blocks):
    """The boundaries, each behind the citation marks that follow it."""
    passed = 0
    for stop, after in boundaries:
        if after > passed and (after in blocks or not passed or re.search("[.?!]", text[passed:stop])):
            marks = _MARKS.match(text, len(text[:stop].rstrip()))
            if marks:
                stop = marks.end()
                after = passed = stop + len(text[stop:]) - len(text[stop:].lstrip())
            yield stop, after


def _ends_item(text, gap):
    before, following = text[: gap.start()], text[gap.end()]
    if before.rstrip("*_").endswith((":", "\uff1a")) or not following.isupper() or not gap[0].endswith("\n"):
        return False
    return bool(_ITEM.match(before.rpartition("\n")[2].lstrip()))


def _ends_row(text, gap):
    line, following = text[: gap.start()].rpartition("\n")[2], text[gap.end()]
    if following in "|{" or (following == "`" and line.endswith((":", ".", "}"))):
        return True
    if line.lstrip().startswith(("|", "```", "~~~")):
        return True
    return bool(_KEY_VALUE.match(line)) and not following.islower()


def _with_values(text, starts, options):
    """The starts of blocks, with those of values of JSON."""
    if options.get("line_breaks") != "lists":
        return sorted({*starts})
    for quote in (m.start() for m in re.finditer('"', text)):
        block = max((start for start in starts if start < quote), default=0)
        item = _ITEM.match(text, block) if _starts_line(text, block) else None
        value = text[item.end() if item else block : quote].rstrip()
        if value.endswith((",", "{")) and _JSON_VALUE.match(value) and text[quote - 1 : quote] in (*",{", *" \n\t"):
            brackets = re.sub(r'"(?:[^"\\]|\\.)*"', "", value)
            while brackets != (brackets := re.sub(r"[^\[\]{}]|\[[\]}]|\{[\]}]", "", brackets)):
                pass
            if not brackets.endswith("["):
                starts = sorted({*starts, quote})
    return sorted({*starts})


def _goes_on(block, stop, start, options):
    """Whether a sentence goes on where Punkt ends it."""
    if not options.get("abbreviations"):
        return False
    initial = _INITIAL.search(block[:stop])
    if _NEVER_LAST.search(block[:stop]) or (
        initial and (block[start] == "(" if initial[1] else block[start].isupper())
    ):
        return True
    return block[start].islower() and _ends_in(block[:stop], options)


def _word(text, at):
    """Start of the word at or after a character; to Punkt, white space that is not ASCII is part of a word."""
    at += len(text[at:]) - len(text[at:].lstrip())
    return len(text[:at].rstrip()) + max(text[len(text[:at].rstrip()) : at].rfind(c) for c in " \n\t\r") + 1


def _starts_line(text, at):
    return not text[:at].strip() or "\n" in text[len(text[:at].rstrip()) : at]


def _ends_in(text, options):
    words = [entry[:-1].lower() for entry in options.get("abbreviations", ()) if entry.endswith("~")]
    return any(re.search(rf"(?<!\w){re.escape(word)}$", text.lower()) for word in words)


def _punkt(options):
    parameters = PunktParameters()
    known = [entry.lower() for entry in options.get("abbreviations", ())]
    parameters.abbrev_types = {entry.rstrip(".") for entry in known if not entry.endswith(("#", "~"))}
    parameters.collocations = {(entry.rstrip("#."), "##number##") for entry in known if entry.endswith("#")}
    return PunktSentenceTokenizer(parameters)


def segment(tokens, config=UNBOUNDED):
    """Feed a segmenter with all tokens of a response."""
    segmenter = IncrementalSegmenter(config)
    return [span for token in tokens for span in segmenter.push(token)] + segmenter.finish()


def bounds(spans):
    return [(span.start, span.end) for span in spans]


def texts(response, spans):
    return [response[span.start : span.end] for span in spans]


def sentences(response, **options):
    """Texts of the sentences of a response that comes one character at a time."""
    return texts(response, segment(response, SegmenterConfig(**options)))


def cut(text, widths):
    """Cut a text into tokens of the given widths, in turn; width 0 gives a token without text."""
    tokens, at = [], 0
    while at < len(text):
        width = widths[len(tokens) % len(widths)]
        tokens.append(text[at : at + width])
        at += width
    return tokens


def assert_partition(spans, count):
    assert [span.index for span in spans] == list(range(len(spans)))
    assert spans[0].token_start == 0 and spans[-1].token_end == count
    assert all(a.token_end == b.token_start for a, b in pairwise(spans))
    assert all(span.token_start <= span.token_end for span in spans)


configs = st.sampled_from([*OPTIONS])
widths_of_tokens = st.lists(st.integers(0, 7), min_size=1, max_size=12).filter(any)
_PIECES = (
    *" .?!\"')(\u201d-\n,;:*#、",
    *("| ", "\n|", "\n{", '"k": ', '", "', "\nKey: ", "\n```", "(max. ", "[", "]", "}"),
    *(
        "[1]",
        "[2, 3]",
        "【1†s】",
        "(Meyer, 2021)",
        "https://x.org/a",
        "[M](https://x.org)",
        "¹",
        "†",
        "Source: A",
        "(The Atlas)",
        "\t",
    ),
    *(". ", ", ", "...", ": ", "\n\n", "\n- ", "\n1. ", "\n# ", "(a) ", "\n2、", "--"),
    *(
        "\u00a0",
        "\u3000",
        "Dr",
        "Dr.",
        "U.S.",
        "No. ",
        "p.m.",
        "3 g.",
        "etc. ",
        "J",
        "3",
        "1,000",
        "a",
        "word",
        "The",
        "\U0001f600",
    ),
    *("。", "！", "．", "，", "」", "）", "東", "\u2022 "),
)
responses = st.lists(st.sampled_from(_PIECES), max_size=30).map("".join)
