from syncheck.spans import SoftSpan, SpanLabels


class Marks:
    """Marks the same characters of whatever it is given, and keeps that."""

    name = "marks"

    def __init__(self, start, stop):
        self.labels = SpanLabels((SoftSpan(start, stop, 0.75),), ((start, stop),))
        self.item = None

    def detect(self, item):
        self.item = item
        return self.labels


def test_spans_are_given_to_the_sentences_they_lie_in(llama, make_monitor):
    monitor = make_monitor(llama)
    prompt = monitor.prompt(question="Who is it?", context=["A poet wrote."])
    report = monitor.score(prompt, " He is a poet. He wrote much. He slept.")
    first, second, third = report.sentences
    detector = Marks(second.start - 3, second.end)
    marked = report.with_spans(detector, lang="en").spans
    found = [marked.within(sentence.start, sentence.end) for sentence in report.sentences]
    assert (detector.item.question, detector.item.response) == ("Who is it?", report.response)
    assert (detector.item.passages, detector.item.lang) == (("A poet wrote.",), "en")
    assert found[0].hard == ((second.start - 3, first.end),)
    assert found[1] == SpanLabels((SoftSpan(second.start, second.end, 0.75),), ((second.start, second.end),))
    assert found[2] == SpanLabels((), ())
