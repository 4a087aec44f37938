"""Which sentences claim nothing, which repeat themselves, and how rows and values of an answer are read."""

import pytest

from syncheck.reading import Claim
from syncheck.results.types import SentenceSpan

CLAIMLESS = [
    "Here is the answer:",
    "Sure!",
    "Passage 1:",
    "## Opening hours",
    "## Lanes and traffic",
    "### Albert Einstein",
    "Opening hours:",
    "Would you like to know more?",
    "What about parking?",
    "I'd be happy to provide more details.",
    "I can look that up for you.",
    "You can write in English.",
    "You can also write to me in German or French.",
    "I am an AI.",
    "I'm just an AI assistant.",
    "As an AI language model, I do not have feelings.",
    "I am a language model trained by a company.",
    "Here's the answer based on the passages:",
    "Based on the provided passages:",
    "According to the context,",
    "Great question!",
    "Of course!",
    "Certainly.",
    "You're welcome!",
    "Here is a short summary of the document:",
    "**Answer:**",
    "Answer:",
    "Question 2:",
    "**Prices (peak):**",
    "**Key points.**",
    "What happens next:",
    "Here is a summary of the export:",
    "For your group on 24 May:",
    "With brown sugar:",
    "[1]",
    "Let me know if you have any other questions!",
    "Please note that I am an AI assistant, so I cannot give medical advice.",
    "Feel free to ask me anything.",
    "Is there anything else I can help you with?",
    "Understood.",
    "Here are the steps:",
    "```python",
    "I can answer questions in English and German.",
    "Certainly! Here is the information you asked for:",
    "Hi there!",
    "Hello!",
    "Thanks for your patience.",
    "I hope that clarifies things.",
    "## Eligibility criteria",
    "## Contact",
    "#### Frequently asked questions",
    "**Note:**",
    "Key facts:",
    "In summary:",
    "To summarize:",
    "Is that helpful?",
    "Shall I continue?",
    "What else would you like to know?",
    "Document 3:",
    "Source 2:",
    "According to the document:",
    "I'm an AI language model developed by a lab, and I do not have personal opinions.",
    "As a virtual assistant, I can only answer questions about these documents.",
    "You can ask me questions in any language.",
    "I only speak English.",
    "I was trained by OpenAI.",
    "My knowledge ends in 2023.",
    "Let's dive in!",
    "Let me explain.",
    "Sure thing!",
    "Happy to help!",
    "Glad to help.",
    "Please let me know how I can assist you further.",
    "Answer 1:",
    "Final answer:",
    "Here's what the passages say:",
    "Here is what I found:",
    "Below is a table with the details:",
]
CLAIMS = [
    "The moon is cheese.",
    "You can write to the office in Oslo.",
    "You can ask at the front desk.",
    "I am a doctor of the town of Oslo.",
    "As an AI company, OpenAI was founded in 2015.",
    "Did you know that the moon is cheese?",
    "Passage 1 opened in 1999.",
    "## Ibuprofen cures cancer",
    "**Albert Einstein**",
    "**No refunds**",
    "Answer: 28 days.",
    "On Sunday it is closed for one reason:",
    "**Refunds are paid within ten days:**",
    "For your group on 24 May",
    "Source: the moon.",
    "I can help cure cancer.",
    "Here is a summary: the moon is cheese.",
    "The AI is an assistant.",
    'The book is called "What is DNA?"',
    "No, no, no parking is allowed.",
    "Text: 5 lines",
    "Made on Mars by Tom:",
    "## Made in 5 days",
    "Great question marks are sold here.",
    "You can talk to the driver in Paris.",
    "I'd tell you that Tom answers questions on Mars.",
    "Check with the bank.",
    "Contact the office in Oslo:",
    "The note is in Oslo.",
    "Hello Kitty opened in Oslo.",
    "Thanks to the bridge, trade grew.",
    "In summary, the moon is cheese.",
    "I was born in Oslo.",
    "Hope Street is closed.",
    "## Parking is free",
    "## Dogs not allowed",
    "### No dogs",
    "Sure Street has a bank.",
    "Happy Bank is closed.",
    "The bot is an AI.",
    "As an assistant, Tom earned 5 euros.",
    "Source: 5 moons",
    "Note: no dogs.",
    "Final answer: 12.",
]


def claim(text, earlier=()):
    return Claim(text, SentenceSpan(0, 0, len(text), 0, 0)).after(earlier)


@pytest.mark.parametrize("text", CLAIMLESS)
def test_what_claims_nothing(text):
    status, _ = claim(text).without_claim
    assert status in ("not_a_claim", "not_checkable")


@pytest.mark.parametrize("text", CLAIMS)
def test_what_claims_something(text):
    assert claim(text).without_claim is None


@pytest.mark.parametrize(
    "text",
    [
        "phone phone phone",
        "the " * 40,
        "It is very very very very very good.",
        "the cat sat " * 5,
        "aaaaaaaaaaaaaaaaaaaaaaa",
        "The the the the the the mill.",
    ],
)
def test_words_again_and_again_are_degenerate(text):
    status, _ = claim(text).without_claim
    assert status == "degenerate"


@pytest.mark.parametrize(
    "text", ["very very good", "0 0 0 0 0 0 and so", "| 5 | 5 | 5 | 5 | 5 |", "Ha ha, it is fun.", "That that is, is."]
)
def test_some_repetition_is_of_the_language(text):
    assert not claim(text).repeats


def test_a_sentence_is_repeated_at_once_or_three_times():
    text, other = "It opened in May.", "It is open."
    assert claim(text, [text]).repeats and claim(text, [text, other, text, other]).repeats
    assert not claim(text, [text, other]).repeats and not claim("It is.", ["It is."]).repeats


TABLE = ["| Plan | Price |", "|---|---|", "| Basic | 2 |", "| Pro | 9. Or so. |"]
VALUES = [
    *("```json", '{"name": "Mill. Old",', '"by": {', '"first": "Ann",', '"tags": ["a", "b"]},'),
    *('"rows": [{', '"k": 1}, {', '"k": 2}]}', "```"),
]


PATHS = ["", "all of: Pro; all Pro k: 1", "all of: Max", "all Max k: 2"]


@pytest.mark.parametrize(
    ("sentences", "readings"),
    [
        (TABLE, ["", None, "Basic (Plan) has Price 2.", "Pro (Plan) has Price 9. Or so."]),
        (["Text.", *TABLE[:3], "Text.", "| A |"], [None, "", None, "Basic (Plan) has Price 2.", None, ""]),
        (VALUES, ["", "name: Mill. Old", "", "by first: Ann", "by tags: a; b", "", "rows 1 k: 1", "rows 2 k: 2", None]),
        (['{"of": null,', '"all": [{"of": "Pro", "k": 1},', '{"of": "Max",', '"k": 2}]}'], PATHS),
        (['"a": 1, and so on', 'He said "b": 2.'], [None, None]),
        (['{"a": 1} x', "{x}"], [None, None]),
    ],
)
def test_rows_and_values_are_read_with_their_header_or_path(sentences, readings):
    assert [claim(text, sentences[:n]).reading for n, text in enumerate(sentences)] == readings


def read(text, *earlier):
    return Claim(text, SentenceSpan(0, 0, len(text), 0, 0)).after(earlier)


@pytest.mark.parametrize("text", ["GAME.", "5.", "...", "Yes.", "Sure!", "Would you like to know more?", "the " * 9])
def test_why_a_sentence_claims_nothing(text):
    assert read(text).emptiness
    assert read("The game is over.").emptiness is None and read("It is red.").emptiness is None


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("5. Return of a damaged item.", "6. Return of a damaged item.", True),
        ("Step 3: Remove the filter.", "Step 9: Remove the filters.", True),
        ("It has two rivers.", "It has 2 rivers.", True),
        ("In 1967, the bridge opened.", "The bridge opened in 1967.", True),
        ("Remove the filter.", "Remove the tray.", False),
        ("The bridge opened in 1967.", "The bridge opened in 1976.", False),
        ("It is open on Monday.", "It is not open on Monday.", False),
    ],
)
def test_sentences_with_the_same_content(one, other, is_same):
    assert (read(one).content == read(other).content) is is_same
