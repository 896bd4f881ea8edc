"""A server of our own for the tests of the page: the program itself, on a free port of this machine."""

import httpx
import pytest
from web_server import serving


@pytest.fixture(scope="session")
def server():
    with serving("--workers", "1") as address:
        yield address


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def browser(chromium):
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


class Visit:
    """A page in a browser, with everything it said and asked for."""

    def __init__(self, context, server):
        self.server, self.page = server, context.new_page()
        self.problems, self.requests = [], []
        self.page.on("console", lambda said: self.problems.append(said.text) if said.type != "log" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, link=""):
        self.page.goto(self.server + link)
        self.page.wait_for_selector("#stage[data-pictures]", timeout=60_000)
        self.settle()
        return self.page

    @property
    def pictures(self):
        return int(self.page.locator("#stage").get_attribute("data-pictures"))

    def settle(self):
        """Until the server has answered all that the page has asked."""
        self.page.wait_for_function(
            "() => document.getElementById('busy').hidden && !('asking' in document.body.dataset)"
        )

    def after(self, action):
        """Do something and wait for the picture that follows; returns the milliseconds that it took."""
        before = self.pictures
        begun = self.page.evaluate("performance.now()")
        action()
        self.page.wait_for_function(
            "before => Number(document.getElementById('stage').dataset.pictures) > before", arg=before, timeout=60_000
        )
        self.settle()
        return self.page.evaluate("performance.now()") - begun

    @property
    def sensors(self):
        return self.page.locator(".sensor").count()

    def place(self, x, y):
        """Pixels of a place of the map, counted from its lower left corner."""
        box = self.page.locator("#stage").bounding_box()
        return box["x"] + x * box["width"], box["y"] + (1 - y) * box["height"]

    def map_pixels(self):
        return self.page.evaluate("document.getElementById('map').toDataURL()")


DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def visit(browser, server):
    """Makes visits; at the end none may have had an error, or have asked another machine for anything."""
    made, contexts = [], []

    def visit(**options):
        contexts.append(browser.new_context(**{**DESKTOP, **options}))
        made.append(Visit(contexts[-1], server))
        return made[-1]

    yield visit
    for context in contexts:
        context.close()
    for one in made:
        assert one.problems == []
        assert [url for url in one.requests if not url.startswith((server, "data:", "blob:"))] == []


@pytest.fixture
def phone():
    return PHONE
