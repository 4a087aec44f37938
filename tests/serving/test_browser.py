"""The page in Chromium: keyboard, phone, dark, breaks of the connection, hostile text."""

import asyncio
import json

import pytest
from browser import needs_chromium, page
from upstreams import Upstream, chunks_of, running, sse

from fod import AbstainGenerator, FODConfig, FODGenerator
from syncheck import Verifier
from syncheck.serving.app import create_app
from syncheck.serving.chat import ServerConfig
from syncheck.serving.gateway import Gateway
from syncheck.serving.sources import OwnModel
from syncheck.testing import WordAligner, scripted_monitor

pytestmark = [pytest.mark.slow, needs_chromium]

HOSTILE = '<img src=x onerror="document.title=1">'
PASSAGES = [f"The bridge opened in 1967. {HOSTILE}", "It has two lanes."]
RIGHT, WRONG, MARKED = "The bridge opened in 1967.", "It opened in 1968.", "It is <b>wide</b>."
ANSWER = f"{RIGHT} {WRONG} {MARKED}"
SUPPORTS = {RIGHT: 0.97, WRONG: 0.1, MARKED: 0.6}
STATUSES = "[...document.querySelectorAll('.status')].map((s) => s.textContent)"
DONE = f"{STATUSES}.length && {STATUSES}.every((s) => /done|complete|stopped/.test(s))"


@pytest.fixture(scope="module")
def browser():
    with page() as opened:
        yield opened


@pytest.fixture(scope="module")
def monitor():
    return scripted_monitor({ANSWER: 4.0, RIGHT: 1.0}, supports=SUPPORTS)


@pytest.fixture(scope="module")
def address(monitor):
    def plain(prompt, *, seed, **options):
        return monitor.stream(prompt, do_sample=False, **options)

    fod = FODGenerator(monitor.model, monitor.tokenizer, monitor, config=FODConfig(temperature=2.0), samples_per_step=4)

    def searched(prompt, *, reveal, **options):
        return fod.stream(prompt, do_sample=False, **options)

    decoders = {"greedy": plain, "fod": searched}
    with running(create_app(OwnModel(monitor, decoders, default="greedy", name="scripted"))) as address:
        yield address


def ask(browser, address, *, reveal="verified", model=""):
    """Ask by the keyboard alone."""
    browser.errors.clear()
    browser.open(address)
    browser.wait("document.forms.ask.elements.example.options.length")
    values = {"question": "When did it open?", "passages": "\n\n".join(PASSAGES), "reveal": reveal, "model": model}
    browser.run(f"Object.entries({json.dumps(values)}).forEach(([n, v]) => (document.forms.ask.elements[n].value = v))")
    browser.run("document.forms.ask.elements.question.focus()")
    browser.press("Enter")


def test_the_page_says_why_there_is_no_text(browser, monitor):
    def abstaining(prompt, *, reveal, **options):
        return AbstainGenerator(monitor.model, monitor.tokenizer, monitor).stream(prompt, do_sample=False, **options)

    source = OwnModel(monitor, {"abstain": abstaining}, default="abstain", name="scripted")
    with running(create_app(source)) as address:
        ask(browser, address)
        (status,) = browser.wait(f"{STATUSES}.every((s) => s.startsWith('unverified')) && {STATUSES}")
    assert status == "unverified: 0 sentences checked; no sentence passed; the best of the last scored 0.10"
    assert not browser.errors


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_says_what_became_of_citations_and_shows_their_passages(browser, width, dark):
    answer = f"{RIGHT[:-1]} [2]. It has two lanes [2]. It has two lanes [9]."
    upstream = Upstream(stream=sse(chunks_of([answer])))
    verifier = Verifier(WordAligner())
    browser.look(width, dark=dark)
    with running(create_app(Gateway(verifier, "http://up/v1", transport=upstream))) as address:
        ask(browser, address, model="m")
        browser.wait(DONE)
        shown = browser.run("document.querySelector('.text').innerText")
        browser.run("document.querySelectorAll('article .sentence')[0].click()")
        said = browser.run("document.querySelector('article .why button.cited').innerText")
        browser.run("document.querySelector('article .why button.cited').click()")
        lit = browser.run("document.querySelector('.passage.lit h2').innerText")
        wide = browser.run("document.documentElement.scrollWidth")
    assert "[9] fabricated" in shown and "[2] misattributed" in shown and "supported" not in shown
    assert said == "[2] misattributed: passage 2 does not support it; passage 1 does"
    assert lit == "Passage 2" and wide <= width
    assert [e for e in browser.errors if e.get("source") != "network"] == []  # the upstream has no list of models


@pytest.mark.parametrize("reveal", ["verified", "immediate"])
def test_the_page_strikes_what_is_taken_back(browser, monitor, reveal):
    def plain(prompt, *, seed, **options):
        return monitor.stream(prompt, do_sample=False, **options)

    source = OwnModel(monitor, {"greedy": plain}, default="greedy", name="scripted")
    with running(create_app(source, ServerConfig(stop_below=0.5))) as address:
        ask(browser, address, reveal=reveal)
        browser.wait(DONE)
        struck = browser.run("[...document.querySelectorAll('del')].map((d) => d.textContent.trim())")
    assert any(WRONG in text for text in struck) == (reveal == "immediate")


@pytest.mark.parametrize("reveal", ["verified", "immediate"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_shows_each_sentence_and_its_source(browser, address, reveal, width, dark):
    browser.look(width, dark=dark)
    ask(browser, address, reveal=reveal)
    browser.wait(DONE)
    greedy, fod = browser.run("[...document.querySelectorAll('.text')].map((t) => t.innerText)")
    assert greedy == ANSWER and fod.startswith(RIGHT)
    browser.run("document.querySelectorAll('article .sentence')[1].focus()")
    browser.press("Enter")
    why = browser.run("document.querySelector('article .why').innerText")
    assert "0.10" in why and "Passage 1 says “1967”, not “1968”." in why
    assert browser.run("document.querySelector('mark').closest('.passage') !== null")
    assert browser.run("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert browser.overflow() <= 0
    assert browser.run("document.querySelectorAll('img, article b').length") == 0
    assert browser.run("document.title") == "syncheck" and not browser.errors
    assert browser.is_dark() == dark


@pytest.mark.parametrize("element", ["button", "input", "select", "textarea", "[role=button]"])
def test_what_one_can_use_has_a_name(browser, address, element):
    browser.look()
    ask(browser, address)
    browser.wait(DONE)
    unnamed = (
        f"[...document.querySelectorAll('{element}')].filter((e) => e.checkVisibility())"
        ".filter((e) => !(e.labels?.length || e.innerText || e.ariaLabel)).length"
    )
    assert browser.run(unnamed) == 0


class Breaking:
    """An application whose answers break off after so many bytes."""

    def __init__(self, app, after):
        self.app, self.after, self.is_broken = app, after, False

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or not scope["path"].startswith("/v1/chat"):
            return await self.app(scope, receive, send)
        left = self.after

        async def some(message):
            nonlocal left
            if message["type"] == "http.response.body":
                body = message.get("body", b"")
                if len(body) >= left:
                    await send({**message, "body": body[:left], "more_body": True})
                    self.is_broken = True
                    raise ConnectionError("broken on purpose")
                left -= len(body)
            await send(message)

        with pytest.raises(ConnectionError):
            await self.app(scope, receive, some)
        await asyncio.sleep(0)


def test_the_page_says_that_the_connection_broke(browser, monitor):
    upstream = Upstream(stream=sse(chunks_of([word + " " for word in ANSWER.split()])), answer={"data": [{"id": "m"}]})
    app = Breaking(create_app(Gateway(monitor, "http://up/v1", transport=upstream)), after=1200)
    browser.look()
    with running(app) as address:
        ask(browser, address, model="m")
        browser.wait("document.querySelector('.status.failed') !== null")
        shown = browser.run("document.querySelector('.text').innerText").strip()
    assert shown and shown != ANSWER and ANSWER.startswith(shown)
    assert app.is_broken
