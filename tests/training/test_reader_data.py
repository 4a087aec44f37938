"""What the starter kit's reader is trained on: what is drawn of a group, the passages that stay, and the batches."""

import random

import reader_data
from contrast_pairs import NOT_STATED, SUPPORTED, Claim, ContrastGroup
from reader_data import UNLABELLED

from syncheck.aligners.reader.aligner import JOINT_TOKENS, SEEN_TOKENS, PassageWindows
from syncheck.aligners.reader.network import BEGIN, END


def row_of(length, number):
    windows = PassageWindows([range(length)])
    parts = windows.parts([0], length)
    return reader_data.Row(windows, parts, parts, parts, range(5), SUPPORTED, "j", number)


def read(encoder, row, parts):
    """Return the text of what is seen or read with a claim."""
    tokens = [[BEGIN, *ids] for ids in row.windows.ids]
    ids = [token for window, begin, end in getattr(row, parts) for token in tokens[window][begin:end]]
    return encoder.tokenizer.decode(ids)


def test_claims_of_one_context_stay_together_in_batches_that_are_not_too_long():
    rng = random.Random(0)
    contexts = [
        [row_of(length, number) for _ in range(rng.randint(1, 13))]
        for number, length in enumerate(rng.choices(range(20, 250), k=200))
    ]
    batches = reader_data.batches_of(rng, contexts)
    assert sorted(map(id, sum(batches, []))) == sorted(map(id, sum(contexts, [])))
    assert len({(row.context, place) for place, batch in enumerate(batches) for row in batch}) == len(contexts)
    sizes = [reader_data.collated(batch).seen.tokens.size for batch in batches]
    assert max(sizes) <= reader_data.BATCH_TOKENS
    assert sorted(sizes)[1] > 0.8 * reader_data.BATCH_TOKENS  # one may be what was left


def test_of_a_context_that_is_too_long_the_sentences_closest_to_each_claim_stay(encoder):
    passages = tuple(f"Room {number} has a blue door and {number} chairs." for number in range(90))
    texts = ("Room 71 has 71 chairs.", "Room 12 has 12 chairs.")
    rows = encoder.rows(ContrastGroup(passages, tuple(Claim(text, SUPPORTED, "") for text in texts), "", ""), 0)
    for row, number in zip(rows, (71, 12), strict=True):
        joint, seen, wide = (reader_data.tokens_of(parts) - 1 for parts in (row.joint, row.seen, row.wide))
        assert joint <= JOINT_TOKENS < seen <= SEEN_TOKENS < wide <= reader_data.WIDE[0]
        assert set(row.joint) < set(row.seen)
        assert f"room {number} has a blue door and {number} chairs." in read(encoder, row, "joint")


def test_a_batch_has_each_window_once_and_tells_where_a_text_is_in_it(encoder, groups):
    rng = random.Random(0)
    pools = reader_data.Pools(groups, encoder, seed=0)
    rows = [row for contexts in pools.contexts(rng)[:12] for row in contexts]
    batch = reader_data.collated(rows)
    assert len(batch.windows) == len({(id(row.windows), part.window) for row in rows for part in row.wide})
    tokens = [*batch.windows.flatten(), *batch.claims.flatten()]
    for number, row in enumerate(rows):
        for name in ("seen", "joint", "wide"):
            places = getattr(batch, name)
            first, end = places.first[number], places.ends[number]
            before = encoder.tokenizer.decode([tokens[place] for place in places.tokens[number][:first]])
            assert before == read(encoder, row, name)
            assert [tokens[p] for p in places.tokens[number][first:end]] == [END, *row.claim, END]


def test_changed_passages_and_claims_are_drawn_without_a_label_if_asked_for(encoder, groups):
    labels, texts = [], []
    for unlabelled in (False, True):
        pools = reader_data.Pools(groups, encoder, seed=0, unlabelled=unlabelled)
        rows = [row for contexts in pools.contexts(random.Random(0)) for row in contexts]
        labels.append([row.label for row in rows])
        texts.append([row for row in rows if row.kind == "swapped"])
    assert UNLABELLED not in labels[0] and not texts[0]
    assert 0.2 < labels[1].count(UNLABELLED) / len(labels[1]) < 0.7
    assert texts[1]


def test_a_swapped_word_is_of_the_same_sort_and_from_the_passages():
    rng = random.Random(0)
    sentence = "The ferry took 40 cars, and Tom."
    found = {reader_data.swapped_word(rng, "The mill has 12 rooms.", [sentence]) for _ in range(60)}
    in_place_of = {"mill": ("ferry", "took", "cars"), "12": ("40",), "rooms": ("ferry", "took", "cars")}
    assert found == {
        "The mill has 12 rooms.".replace(old, new) for old, others in in_place_of.items() for new in others
    }
    assert reader_data.swapped_word(rng, "It is so.", ["The ferry took 40 cars."]) is None


def test_a_sentence_that_is_longer_than_there_is_room_is_cut(encoder):
    context = encoder.context(["a b c d e f g h"])
    seen, joint, wide = context.parts("g h", 3, 2, reader_data.WIDE[0])
    assert seen == joint == [(0, 0, 1), (0, 1, 4)]
    assert wide == [(0, 0, 1), (0, 1, 9)]


def told(encoder, rows):
    return [encoder.tokenizer.decode(list(row.claim)) for row in rows]


def test_what_is_drawn_of_a_written_group_are_pairs_a_near_copy_and_a_foreign_claim(encoder, groups):
    pools = reader_data.Pools(groups, encoder, seed=0)
    beside, seen = 0, set()
    for seed in range(40):
        rows = pools.drawn(random.Random(seed), "matched", groups["matched"][3], 7)
        own = told(encoder, rows[: reader_data.MOST_CLAIMS])
        assert all(row.context == 7 for row in rows)
        assert [text.replace("rooms", "cellars") for text in own[::2]] == own[1::2]
        assert len(set(own)) == len(own)
        seen.update(own)
        copy, *foreign = rows[reader_data.MOST_CLAIMS :]
        assert (copy.kind, copy.label) == ("copy", SUPPORTED)
        assert [(row.kind, row.label) for row in foreign] in ([], [("unrelated", NOT_STATED)])
        assert len({id(row.windows) for row in rows}) == 1
        text = encoder.tokenizer.decode([token for ids in rows[0].windows.ids for token in ids])
        assert text.count("matched 3 has") == 6
        beside += text.count(" has") > 6
    assert 2 < beside < 20
    assert seen == {claim.text.lower() for claim in groups["matched"][3].claims}


def test_of_another_source_neighbouring_claims_are_drawn_as_they_are(encoder, groups):
    pools = reader_data.Pools({"edits": groups["edits"]}, encoder, seed=0)
    rows = pools.drawn(random.Random(0), "edits", groups["edits"][0], 0)
    claims = [claim.text.lower() for claim in groups["edits"][0].claims]
    first = claims.index(told(encoder, rows)[0])
    assert told(encoder, rows) == claims[first : first + reader_data.MOST_CLAIMS]
