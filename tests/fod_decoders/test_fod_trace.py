"""A search as a tree: what was kept, what was pruned, and why; drawn in the report."""

from test_fod_generator import run as generate
from test_fod_reveal import SAMPLES
from test_fod_search import config, run

from fod import trace_of
from syncheck.report import render_html
from syncheck.results import Answer, Case, TraceNode


def shape(nodes):
    return [(node.text, node.fate, shape(node.children)) for node in nodes]


def test_every_candidate_is_in_its_place():
    samples = SAMPLES | {"a": [("c", 0.9), ("d", 0.8), ("x", 0.7), ("y", 0.2)]}
    result, _ = run([("a", 0.9), ("b", 0.1)], samples)
    tree = trace_of(result, *config())
    assert shape(tree) == [
        (
            "a",
            "answer",
            [
                ("b", "taken_back", []),
                ("c", "kept", [("e", "outranked", [])]),
                ("d", "answer", [("f", "answer", [("h", "answer", [])]), ("g", "kept", [])]),
                ("x", "outranked", []),
                ("y", "pruned", []),
            ],
        )
    ]
    (root,) = tree
    assert root.size == 10
    reasons = {child.text: child.reason for child in root.children}
    assert reasons == {
        "b": "greedy, τ₁ is 0.50",
        "c": "kept, then another beam was better",
        "d": "in the answer",
        "x": "passed, but 2 were better",
        "y": "τ₂ is 0.60",
    }
    assert root.to_dict()["children"][4] == {
        "text": "y",
        "score": 0.2,
        "fate": "pruned",
        "reason": "τ₂ is 0.60",
        "children": [],
    }


def test_nothing_taken_back_is_a_chain():
    result, _ = run([("a", 0.9), ("b", 0.8, "end_of_text")])
    assert shape(trace_of(result, *config())) == [("a", "answer", [("b", "answer", [])])]


def test_a_marked_sentence():
    result, _ = run([("a", 0.1)], {"": [("c", 0.3, "end_of_text"), ("d", 0.2)]}, on_exhausted="annotate")
    assert shape(trace_of(result, *config())) == [
        ("a", "taken_back", []),
        ("c", "marked", []),
        ("d", "kept", []),
    ]


def test_the_generators_trace_holds_all_that_was_proposed(monitor, prompt):
    out = generate(monitor, prompt, 0.6, 0.6)
    tried = sum(len(step.candidates) for step in out.search.rounds) + len(out.dropped)
    assert sum(node.size for node in out.trace) == tried + len(out.search.greedy.sentences)

    def chosen(nodes):
        return [t for n in nodes if n.fate in ("answer", "marked") for t in (n.text, *chosen(n.children))]

    assert " ".join(chosen(out.trace)).strip() == " ".join(s.text for s in out.report.sentences)


def test_the_report_draws_it(monitor, prompt):
    out = generate(monitor, prompt, 0.6, 0.6)
    leaf = TraceNode("<b>tagged</b>", 0.25, "pruned", "τ₂ is 0.60")
    tree = (TraceNode("Root.", 0.9, "answer", "greedy", (leaf, TraceNode("", None, "kept", "kept"))),)
    page = render_html([Case("Q?", prompt.passages, (Answer("FOD", out.report, trace=tree),))])
    assert "3 sentences tried" in page and page.count('<li class="') == 3
    assert "&lt;b&gt;tagged&lt;/b&gt;" in page and "<b>tagged</b>" not in page
    assert "(the text ends here)" in page and "τ₂ is 0.60" in page
    inner = page[page.index('<li class="answer">') : page.index('<li class="kept">')]
    assert inner.index("Root.") < inner.index("<ul>") < inner.index('<li class="pruned">')


def test_an_answer_without_a_search_has_no_tree(monitor, prompt):
    report = monitor.generate(prompt, max_new_tokens=8, do_sample=False)
    assert 'class="trace"' not in report.to_html()
