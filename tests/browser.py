"""A headless Chromium for tests of pages, driven by its own protocol."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from base64 import b64decode
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH, and none named by $CHROMIUM")

_KEYS = {"Enter": ("\r", 13), " ": (" ", 32), "Tab": ("", 9)}


class Page:
    """One page; ``errors`` has what its scripts threw or logged as errors."""

    def __init__(self, socket):
        self._socket = socket
        self._ids = count(1)
        self.errors = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def command(self, method, **params):
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            told = json.loads(self._socket.recv(timeout=120))
            if told.get("method") == "Runtime.exceptionThrown":
                self.errors.append(told["params"]["exceptionDetails"])
            elif told.get("method") == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
                self.errors.append(told["params"]["entry"])
            if told.get("id") == number:
                assert "error" not in told, told
                return told["result"]

    def look(self, width=1280, height=900, *, dark=False):
        """Set the size of the window, and its colours."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address):
        self.command("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def run(self, script):
        """The value of an expression, or of the promise that it is."""
        found = self.command("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script, seconds=60):
        """The value of an expression, once it is true."""
        until = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < until, f"not true in {seconds} s: {script}; errors: {self.errors}"
            time.sleep(0.05)
        return value

    def press(self, key):
        text, code = _KEYS[key]
        for kind in ("keyDown", "keyUp"):
            said = {"text": text} if text and kind == "keyDown" else {}
            self.command("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **said)

    def overflow(self):
        """Pixels that the page is wider than its window."""
        return self.run("document.documentElement.scrollWidth - innerWidth")

    def is_dark(self):
        """Whether the text is lighter than half."""
        return self.run("parseInt(getComputedStyle(document.querySelector('main')).color.slice(4)) > 127")

    def screenshot(self, path):
        shot = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        Path(path).write_bytes(b64decode(shot["data"]))


@contextmanager
def page():
    """A new page in a browser of its own."""
    from websockets.sync.client import connect

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server", "--no-first-run"]
        command += ["--remote-debugging-port=0", f"--user-data-dir={profile}", "--disable-dev-shm-usage", "about:blank"]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = Path(profile, "DevToolsActivePort")
            until = time.monotonic() + 60
            while not (port.exists() and port.read_text()):
                assert browser.poll() is None and time.monotonic() < until, "chromium did not start"
                time.sleep(0.05)
            with urllib.request.urlopen(f"http://127.0.0.1:{port.read_text().split()[0]}/json/list") as response:
                (target,) = [one for one in json.load(response) if one["type"] == "page"]
            with connect(target["webSocketDebuggerUrl"], max_size=None, proxy=None) as socket:
                yield Page(socket)
        finally:
            browser.terminate()
            browser.wait(30)
