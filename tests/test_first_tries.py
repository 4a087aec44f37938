"""The pairs of first tries are well formed, and what is said of their scores is right. No pair of them is scored."""

import json
from collections import Counter, defaultdict

import numpy as np
import pytest
from boundaries import ROOT
from first_tries import judge, load_pairs, main, table

from syncheck.base.errors import InputError

FIELDS = ["id", "context_id", "domain", "kind", "question", "context", "supported", "unsupported", "relation", "half"]
KINDS = set(
    "number name date place negation antonym role comparison quantifier condition unrelated paraphrase inference "
    "partly_true".split()
)


@pytest.fixture(scope="module")
def records():
    lines = (ROOT / "benchmarks" / "first_tries.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_every_pair_has_all_fields_and_no_others(records):
    for record in records:
        assert list(record) == FIELDS
        texts = [*(record[name] for name in FIELDS if name != "context"), *record["context"]]
        assert record["context"] and all(isinstance(t, str) and t == t.strip() and t for t in texts), record["id"]
        assert record["question"].endswith(("?", ".")) and record["half"] in ("open", "closed")
        assert record["relation"] in ("contradicted", "not_stated")
        assert record["kind"] != "unrelated" or record["relation"] == "not_stated"


def test_the_second_set_has_other_pairs_of_every_kind(records):
    second = load_pairs(ROOT / "benchmarks" / "first_tries_second.jsonl", "closed")
    kinds = Counter(pair.kind for pair in second)
    assert set(kinds) == KINDS and min(kinds.values()) >= 12
    assert len({pair.context_id for pair in second}) == len({pair.context for pair in second}) == 60
    known = {r[name] for r in records for name in ("id", "supported", "unsupported")}
    told = [text for pair in second for text in (pair.id, pair.supported, pair.unsupported)]
    assert len(set(told)) == len(told) and known.isdisjoint(told)
    assert {pair.context for pair in second}.isdisjoint(tuple(r["context"]) for r in records)


@pytest.mark.parametrize(
    ("name", "kinds"), [("cells_and_sums", {"table", "record", "derived"}), ("reasoning", {"exam", "trial"})]
)
def test_other_pairs_are_divided_by_context(name, kinds):
    halves = [load_pairs(ROOT / "benchmarks" / f"{name}.jsonl", half) for half in ("open", "closed")]
    assert all({pair.kind.partition(" ")[0] for pair in half} == kinds for half in halves)
    opened, closed = ({pair.context for pair in half} for half in halves)
    assert opened.isdisjoint(closed) and all(len({p.supported for p in half}) == len(half) >= 60 for half in halves)


def test_there_are_enough_pairs_of_every_kind(records):
    kinds = Counter(r["kind"] for r in records)
    assert len(records) >= 300 and len({r["context_id"] for r in records}) >= 60
    assert set(kinds) == KINDS and min(kinds.values()) >= 20


def test_nothing_comes_twice(records):
    ids, sentences = [r["id"] for r in records], [r[name] for r in records for name in ("supported", "unsupported")]
    assert len(set(ids)) == len(ids)
    assert len({s.casefold() for s in sentences}) == len(sentences)
    passages = {r["context_id"]: (r["question"], *r["context"]) for r in records}
    assert len({part for parts in passages.values() for part in parts}) == sum(map(len, passages.values()))


def test_pairs_of_a_context_share_all_that_is_about_it(records):
    shared = defaultdict(set)
    for r in records:
        shared[r["context_id"]].add((r["domain"], r["question"], r["half"], *r["context"]))
    assert all(len(found) == 1 for found in shared.values())


def test_the_halves_are_alike(records):
    contexts = {r["context_id"]: (r["half"], r["domain"]) for r in records}
    assert Counter(half for half, _ in contexts.values()) == dict.fromkeys(("open", "closed"), len(contexts) / 2)
    for name in ("domain", "kind"):
        counts = Counter((r[name], r["half"]) for r in records)
        for value in {r[name] for r in records}:
            assert counts[value, "open"] == counts[value, "closed"] > 0, value


def test_sentences_and_contexts_are_of_many_lengths(records):
    lengths = [len(r[name].split()) for r in records for name in ("supported", "unsupported")]
    assert min(lengths) == 4 and 25 < max(lengths) <= 35
    words = {r["context_id"]: [len(p.split()) for p in r["context"]] for r in records}
    assert min(map(sum, words.values())) < 50 and max(map(sum, words.values())) > 300
    assert {len(parts) for parts in words.values()} == {1, 2, 3, 4}


def pair(name, kind, context, supported, unsupported, half="open"):
    values = [name, name[0], "weather", kind, "How was the weather?", [context], supported, unsupported]
    return dict(zip(FIELDS, [*values, "contradicted", half], strict=True))


THREE = [
    pair("a-1", "number", "It rained for 4 days in Oslo.", "It rained for 4 days.", "It rained for 9 days."),
    pair("a-2", "place", "It rained for 4 days in Oslo.", "It rained in Oslo.", "It rained in Bergen."),
    pair("b-1", "number", "There were 2 storms.", "Storms came twice.", "There were 7 storms.", half="closed"),
]


@pytest.fixture
def three(tmp_path):
    path = tmp_path / "three.jsonl"
    path.write_text("".join(json.dumps(p) + "\n" for p in THREE), encoding="utf-8")
    return path


def test_a_half_is_read_alone(three):
    assert [p.id for p in load_pairs(three, "open")] == ["a-1", "a-2"]
    assert [p.id for p in load_pairs(three, "closed")] == ["b-1"]
    assert [p.context for p in load_pairs(three)] == [tuple(p["context"]) for p in THREE]


@pytest.mark.parametrize("change", [{"half": "none"}, {"relation": "?"}, {"context": []}, {"kind": None}])
def test_a_bad_record_is_refused(tmp_path, change):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(THREE[0] | change) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=next(iter(change))):
        load_pairs(path)


def test_ties_count_one_half_and_a_missing_score_is_never_right():
    scores = np.array([[0.9, 0.1], [0.4, 0.4], [0.2, 0.8], [np.nan, 0.3], [0.5, 0.5], [np.nan, np.nan]])
    found = judge(scores, 0.5)
    assert found.ordered.tolist() == [1, 0.5, 0, 0, 0.5, 0]
    assert found.sides.tolist() == [[1, 1], [0, 1], [0, 0], [0, 1], [1, 0], [0, 0]]
    assert found.unscored.tolist() == [0, 0, 0, 1, 0, 2]
    assert judge(scores, 0.3).sides.tolist() == [[1, 1], [1, 0], [0, 0], [0, 0], [1, 0], [0, 0]]


def test_shares_are_by_kind_and_in_all_with_intervals_over_contexts(three):
    pairs = load_pairs(three)
    head, number, place, everything = table(pairs, judge(np.array([[0.9, 0.1], [0.8, 0.6], [0.1, 0.2]]), 0.5), seed=0)
    assert head.split()[0] == "kind"
    # One context is right and the other wrong; both were drawn alone in more than 2.5 % of the resamples.
    assert number.split()[:5] == ["number", "2", "0.500", "[0.000,", "1.000]"]
    assert place.split()[:8] == ["place", "1", *["1.000", "[no", "interval]"], *["0.500", "[no", "interval]"]]
    assert everything.split()[:5] == ["all", "3", "0.667", "[0.000,", "1.000]"]
    assert {line.split()[-1] for line in (number, place, everything)} == {"0"}


@pytest.mark.slow
@pytest.mark.parametrize("half, count", [("open", 2), ("closed", 1), ("both", 3)])
def test_the_script_scores_pairs_with_the_kit(capsys, tmp_path, three, half, count):
    output = tmp_path / "scores.jsonl"
    main(["--half", half, "--data", str(three), "--wrong", "--output", str(output), "--threshold", "0.4"])
    shown = capsys.readouterr().out
    assert f"half {half}: {count} pairs" in shown and "threshold 0.4" in shown and "ordered" in shown
    scores = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [s["id"] for s in scores] == [p["id"] for p in THREE if half in (p["half"], "both")]
    assert all(0 < s["supported_score"] < 1 and 0 < s["unsupported_score"] < 1 for s in scores)


def test_what_cannot_be_read_ends_the_script(tmp_path):
    path = tmp_path / "empty.jsonl"
    path.write_text("", encoding="utf-8")
    with pytest.raises(SystemExit, match="none"):
        main(["--data", str(path)])
