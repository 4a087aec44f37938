"""What the starter kit's reader is trained on: what is drawn of a group, the passages that stay, and the batches."""

import random

import reader_data
from contrast_pairs import NOT_STATED, SUPPORTED, Claim, ContrastGroup


def test_claims_of_one_context_stay_together_in_batches_that_are_not_too_long():
    rng = random.Random(0)
    contexts = [
        [reader_data.Row(range(length), range(5), SUPPORTED, "j", number) for _ in range(rng.randint(1, 13))]
        for number, length in enumerate(rng.choices(range(20, 250), k=200))
    ]
    batches = reader_data.batches_of(rng, contexts)
    assert sorted(map(id, sum(batches, []))) == sorted(map(id, sum(contexts, [])))
    assert len({(row.context, place) for place, batch in enumerate(batches) for row in batch}) == len(contexts)
    sizes = [reader_data.collated(batch).ids.size for batch in batches]
    assert max(sizes) <= reader_data.BATCH_TOKENS
    assert sorted(sizes)[1] > 0.8 * reader_data.BATCH_TOKENS  # one may be what was left


def test_of_a_context_that_is_too_long_the_sentences_closest_to_each_claim_stay(encoder):
    passages = tuple(f"Room {number} has a blue door and {number} chairs." for number in range(90))
    texts = ("Room 71 has 71 chairs.", "Room 12 has 12 chairs.")
    rows = encoder.rows(ContrastGroup(passages, tuple(Claim(text, SUPPORTED, "") for text in texts), "", ""), 0)
    for row, number in zip(rows, (71, 12), strict=True):
        assert len(row.premise) <= reader_data.BUDGETS[-1]
        assert f"room {number} has a blue door and {number} chairs." in encoder.tokenizer.decode(list(row.premise))


def test_a_sentence_that_is_longer_than_there_is_room_is_cut(encoder):
    context = encoder.context(["a b c d e f g h"])
    assert context.closest("g h", 3) == context.chunks[0][:3]


def told(encoder, rows):
    return [encoder.tokenizer.decode(list(row.claim)) for row in rows]


def test_what_is_drawn_of_a_written_group_are_pairs_a_near_copy_and_a_foreign_claim(encoder, groups):
    pools = reader_data.Pools(groups, encoder, seed=0)
    beside, seen = 0, set()
    for seed in range(40):
        rows = pools.drawn(random.Random(seed), groups["matched"][3], 7)
        own = told(encoder, rows[: reader_data.MOST_CLAIMS])
        assert all(row.context == 7 for row in rows)
        assert [text.replace("rooms", "cellars") for text in own[::2]] == own[1::2]
        assert len(set(own)) == len(own)
        seen.update(own)
        copy, *foreign = rows[reader_data.MOST_CLAIMS :]
        assert (copy.kind, copy.label) == ("copy", SUPPORTED)
        assert [(row.kind, row.label) for row in foreign] in ([], [("unrelated", NOT_STATED)])
        assert len({tuple(row.premise) for row in rows}) == 1
        assert len(rows[0].premise) <= reader_data.BUDGETS[-1]
        text = encoder.tokenizer.decode(list(rows[0].premise))
        assert text.count("matched 3 has") == 6
        beside += text.count(" has") > 6
    assert 2 < beside < 20
    assert seen == {claim.text.lower() for claim in groups["matched"][3].claims}


def test_of_another_source_neighbouring_claims_are_drawn_as_they_are(encoder, groups):
    pools = reader_data.Pools({"edits": groups["edits"]}, encoder, seed=0)
    rows = pools.drawn(random.Random(0), groups["edits"][0], 0)
    claims = [claim.text.lower() for claim in groups["edits"][0].claims]
    first = claims.index(told(encoder, rows)[0])
    assert told(encoder, rows) == claims[first : first + reader_data.MOST_CLAIMS]
