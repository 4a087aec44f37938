"""The adapters for LlamaIndex, with nodes, responses and a query engine of llama-index-core itself."""

import asyncio

import pytest
from llama_index.core import get_response_synthesizer
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode

from syncheck import Verifier
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.integrations.llama_index import SupportPostprocessor, score_response
from syncheck.testing import ScriptedAligner

ANSWER = "It has two lanes. It opened in 1967. It is in Rome."
NODES = [
    NodeWithScore(node=TextNode(text="The Avon bridge opened in 1967."), score=0.2),
    NodeWithScore(node=TextNode(text="Rome lies on the Tiber."), score=0.9),
    NodeWithScore(node=TextNode(text="The bridge has two lanes."), score=0.1),
]


class Writer(CustomLLM):
    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=ANSWER)

    def stream_complete(self, prompt, formatted=False, **kwargs):
        yield CompletionResponse(text=ANSWER, delta=ANSWER)


class Shelf(BaseRetriever):
    def _retrieve(self, query_bundle):
        return NODES


@pytest.fixture(scope="module")
def verifier():
    supports = {"It has two lanes.": 0.8, "It opened in 1967.": 0.9, "It is in Rome.": 0.1}
    return Verifier(ScriptedAligner(supports))


def test_a_response_is_scored_by_its_source_nodes(verifier):
    engine = RetrieverQueryEngine(Shelf(), get_response_synthesizer(llm=Writer()))
    report = score_response(engine.query("How wide is it?"), verifier=verifier)
    assert [s.score for s in report.sentences] == pytest.approx([0.8, 0.9, 0.1])
    assert report.prompt.passages == tuple(node.text for node in NODES)


@pytest.mark.parametrize(("response", "error"), [(Response(response=None), InputError), (ANSWER, WrongTypeError)])
def test_what_is_no_response_is_refused(verifier, response, error):
    with pytest.raises(error):
        score_response(response, verifier=verifier)


@pytest.mark.parametrize("kind", [StreamingResponse, AsyncStreamingResponse])
def test_a_streaming_response_is_named_with_its_remedy(verifier, kind):
    with pytest.raises(WrongTypeError, match=rf"found {kind.__name__}.*get_response\(\)"):
        score_response(kind(iter(())), verifier=verifier)


def test_a_streaming_response_is_scored_as_the_message_says(verifier):
    engine = RetrieverQueryEngine(Shelf(), get_response_synthesizer(llm=Writer(), streaming=True))
    report = score_response(engine.query("How wide is it?").get_response(), verifier=verifier)
    assert [s.score for s in report.sentences] == pytest.approx([0.8, 0.9, 0.1])


def cited(verifier):
    """The places of the nodes that the sentences' evidence is from."""
    report = score_response(Response(response=ANSWER, source_nodes=NODES), verifier=verifier)
    return [s.evidence.passage for s in report.sentences]


def test_the_nodes_that_support_the_answer_are_kept(verifier):
    postprocessor = SupportPostprocessor(ANSWER, verifier=verifier)
    wide, opened, _ = cited(verifier)
    kept = postprocessor.postprocess_nodes(NODES, query_str="How wide is it?")
    expected = {}
    for place, score in ((wide, 0.8), (opened, 0.9)):
        expected[place] = max(score, expected.get(place, 0.0))
    ordered = sorted(expected.items(), key=lambda found: -found[1])
    assert [node.node for node in kept] == [NODES[place].node for place, _ in ordered]
    assert [node.score for node in kept] == pytest.approx([score for _, score in ordered])
    assert [node.score for node in NODES] == [0.2, 0.9, 0.1]
    again = asyncio.run(postprocessor.apostprocess_nodes(NODES))
    assert [node.node for node in again] == [node.node for node in kept]


def test_a_blank_node_supports_nothing(verifier):
    postprocessor = SupportPostprocessor(ANSWER, verifier=verifier)
    plain = postprocessor.postprocess_nodes(NODES)
    found = postprocessor.postprocess_nodes([NodeWithScore(node=TextNode(text=" ")), *NODES])
    assert [node.node for node in found] == [node.node for node in plain]


def test_nothing_supports_nothing(verifier):
    assert SupportPostprocessor(ANSWER, verifier=verifier).postprocess_nodes([]) == []
    assert SupportPostprocessor(ANSWER, at_least=0.95, verifier=verifier).postprocess_nodes(NODES) == []


def test_a_threshold_outside_its_range_is_refused():
    with pytest.raises(InputError):
        SupportPostprocessor(ANSWER, at_least=2)
