"""The example deployment of the gateway: each setting is one it takes, and each metric of the dashboard is exposed."""

import argparse
import asyncio
import json
import re

import httpx
import pytest
import yaml
from boundaries import ROOT
from prometheus_client.parser import text_string_to_metric_families
from upstreams import ANSWER, Upstream, asked, whole

from syncheck.cli import parser
from syncheck.cli.options import SECRETS, unknown_variables
from syncheck.cli.serving import _FAREWELL_SECONDS
from syncheck.serving.app import create_app
from syncheck.serving.gateway import Gateway

FOLDER = ROOT / "examples" / "gateway"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
QUERIES = [(panel["title"], each["expr"]) for panel in DASHBOARD["panels"] for each in panel["targets"]]
_OF_SCRAPES = {"instance", "job"}


@pytest.fixture
def args(monkeypatch):
    """What ``syncheck gateway`` is told in the container."""
    for name, value in SERVICES["gateway"]["environment"].items():
        monkeypatch.setenv(name, value)
    whole_parser = parser("gateway")
    (commands,) = (action for action in whole_parser._actions if isinstance(action, argparse._SubParsersAction))
    assert unknown_variables([commands.choices["gateway"]]) == []
    return whole_parser.parse_args(SERVICES["gateway"]["command"])


def test_each_setting_is_one_that_the_gateway_takes(args):
    assert args.upstream == "http://model:8000/v1" and "model" in SERVICES
    assert SERVICES["model"]["command"][-2:] == ["--port", "8000"]
    assert args.host == "0.0.0.0" and SERVICES["gateway"]["ports"] == [f"127.0.0.1:{args.port}:{args.port}"]
    assert SERVICES["gateway"]["environment"].keys() & SECRETS == {"SYNCHECK_API_KEY"} and args.api_key_file is None


def test_a_container_that_is_read_only_gets_files_alone():
    """Docker Compose copies the others into the container, which fails."""
    for service in (one for one in SERVICES.values() if one.get("read_only")):
        for kind in ("secrets", "configs"):
            names = [one if isinstance(one, str) else one["source"] for one in service.get(kind, ())]
            assert all("file" in COMPOSE[kind][name] for name in names)


def test_the_gateway_has_time_to_stop(args):
    assert int(SERVICES["gateway"]["stop_grace_period"].removesuffix("s")) > args.grace + _FAREWELL_SECONDS


def test_what_is_ready_is_asked_at_an_address_that_is_served(monitor, args):
    paths = {route.path for route in create_app(Gateway(monitor, "http://up/v1")).routes}
    assert f"http://localhost:{args.port}/readyz" in SERVICES["gateway"]["healthcheck"]["test"][-1]
    assert "/readyz" in paths and "/metrics" in paths
    assert SERVICES["gateway"]["depends_on"]["model"]["condition"] == "service_healthy"
    scraped = yaml.safe_load(COMPOSE["configs"]["prometheus"]["content"])["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == [f"gateway:{args.port}"]
    (secret,) = SERVICES["prometheus"]["secrets"]
    assert scraped["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    assert COMPOSE["secrets"][secret]["environment"] == "SYNCHECK_API_KEY"


def test_its_files_are_there_and_its_images_have_versions():
    for service in SERVICES.values():
        if "build" in service:
            assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).resolve().is_file()
        else:
            assert re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+", service["image"])
    named = {name for service in SERVICES.values() for name in [each["source"] for each in service.get("configs", ())]}
    assert named == COMPOSE["configs"].keys()
    assert (FOLDER / COMPOSE["configs"]["dashboard"]["file"]) == FOLDER / "dashboard.json"


def test_the_image_has_what_it_copies_and_starts_the_command():
    lines = (FOLDER / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert all((ROOT / name).exists() for name in copied) and 'ENTRYPOINT ["syncheck"]' in lines
    assert {"syncheck", "fod", "pyproject.toml", "constraints.txt", "data-packages.txt"} <= set(copied)


@pytest.fixture(scope="module")
def exposed(monitor):
    """The labels of each metric of a gateway that has answered."""

    async def metrics():
        gateway = Gateway(monitor, "http://up/v1", transport=Upstream(answer=whole(ANSWER)))
        transport = httpx.ASGITransport(create_app(gateway))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.post("/v1/chat/completions", json=asked())
            return (await client.get("/metrics")).text

    families = text_string_to_metric_families(asyncio.run(metrics()))
    samples = [sample for family in families for sample in family.samples]
    return {sample.name: set(sample.labels) for sample in samples}


@pytest.mark.parametrize(("panel", "query"), QUERIES)
def test_a_panel_asks_for_metrics_and_labels_that_are_exposed(exposed, panel, query):
    named = re.findall(r"(syncheck_\w+)(?:\{([^}]*)\})?", query)
    assert named, panel
    for metric, chosen in named:
        assert {label for label in re.findall(r"(\w+)\s*[=!]", chosen)} <= exposed[metric]
        assert ("histogram_quantile" in query) <= metric.endswith("_bucket")
    grouped = {label.strip() for labels in re.findall(r"by \(([^)]*)\)", query) for label in labels.split(",")}
    assert grouped <= set.union(*(exposed[metric] for metric, _ in named)) | _OF_SCRAPES
    assert query.count("(") == query.count(")") and query.count("[") == query.count("]")


def test_each_metric_has_a_panel_and_a_line_in_the_docs(exposed):
    asked_for = {metric for _, query in QUERIES for metric in re.findall(r"syncheck_\w+", query)}
    bare = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in exposed if not name.endswith("_created")}
    assert bare == {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked_for}
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    assert bare == set(re.findall(r"`(syncheck_\w+)`", page.partition("## Metrics")[2].partition("## Other")[0]))
