"""Every action of the page, in a real browser: by mouse, by touch and by keyboard."""

import pytest

pytestmark = pytest.mark.browser


def test_opens_on_an_example_that_is_already_drawn(visit):
    page = (here := visit()).open()
    assert here.sensors == 8
    assert page.locator(".coefficient").count() == 3
    colours = page.evaluate(
        """() => { const map = document.getElementById('map');
        const pixels = map.getContext('2d').getImageData(0, 0, map.width, map.height).data;
        const colours = Array.from({length: pixels.length / 4}, (_, i) => pixels.slice(4 * i, 4 * i + 3).join());
        return new Set(colours).size }"""
    )
    assert colours > 100  # a field, not a blank


def test_mouse_adds_drags_and_removes_sensors(visit):
    page = (here := visit()).open()
    first = here.map_pixels()
    here.after(lambda: page.mouse.click(*here.place(0.5, 0.9)))
    assert here.sensors == 9
    assert here.map_pixels() != first
    moved = page.locator(".sensor").nth(0)
    box = moved.bounding_box()

    def drag(x, y):
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(*here.place(x, y), steps=6)
        page.mouse.up()

    here.after(lambda: drag(0.6, 0.4))
    assert "x 0.60, y 0.40" in moved.get_attribute("aria-label")
    box = moved.bounding_box()
    here.after(lambda: drag(1.12, 0.5))
    assert here.sensors == 8


def test_undo_and_redo_by_button_and_by_key(visit):
    page = (here := visit()).open()
    assert page.locator("#undo").is_disabled()
    original = here.map_pixels()
    here.after(lambda: page.mouse.click(*here.place(0.5, 0.9)))
    here.after(lambda: page.locator("#clear").click())
    assert here.sensors == 0
    here.after(lambda: page.keyboard.press("Control+z"))
    assert here.sensors == 9
    here.after(lambda: page.locator("#undo").click())
    assert (here.sensors, here.map_pixels()) == (8, original)
    here.after(lambda: page.keyboard.press("Control+Shift+Z"))
    here.after(lambda: page.locator("#redo").click())
    assert here.sensors == 0


def test_keyboard_alone_does_everything(visit):
    page = (here := visit()).open()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # skips to the map
    assert page.evaluate("document.activeElement.id") == "stage"
    for key in ("ArrowRight", "ArrowUp", "Shift+ArrowUp"):
        page.keyboard.press(key)
    here.after(lambda: page.keyboard.press("Enter"))
    assert here.sensors == 9
    assert "x 0.52, y 0.60" in page.locator(".sensor").nth(8).get_attribute("aria-label")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.id") == "0"
    here.after(lambda: page.keyboard.press("ArrowLeft"))
    assert "x 0.28, y 0.22" in page.locator(".sensor").nth(0).get_attribute("aria-label")
    here.after(lambda: page.keyboard.press("Delete"))
    assert here.sensors == 8
    assert page.evaluate("document.activeElement.id") == "stage"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.dataset.view"))
    wanted = {"play", "time", "best", "regime", "seed", "noise", "resolution", "truth", "open-data", "share", "std"}
    assert wanted <= reached
    page.locator("#time").focus()
    page.keyboard.press("ArrowRight")
    here.settle()
    assert "1.050, a forecast" in page.locator("#time-now").inner_text()
    page.locator("#best").focus()
    here.after(lambda: page.keyboard.press("Enter"))
    assert here.sensors == 9


def test_touch_adds_drags_removes_and_draws(visit, phone):
    page = (here := visit(**phone)).open()
    here.after(lambda: page.touchscreen.tap(*here.place(0.5, 0.9)))
    assert here.sensors == 9
    finger = page.context.new_cdp_session(page)

    def slide(*places):
        points = [[{"x": x, "y": y}] for x, y in places]
        page.wait_for_timeout(400)  # else it would be a double tap
        finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[0]})
        for point in points[1:]:
            finger.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": point})
            page.wait_for_timeout(40)  # a finger takes longer than a frame
        finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    here.after(lambda: slide(here.place(0.5, 0.9), here.place(0.45, 0.8), here.place(0.4, 0.7)))
    assert "x 0.40, y 0.70" in page.locator(".sensor").nth(8).get_attribute("aria-label")
    here.after(lambda: slide(here.place(0.4, 0.7), here.place(0.4, 0.9), here.place(0.4, 1.1)))
    assert here.sensors == 8
    here.after(lambda: page.locator("#tool [data-value=source]").tap())
    before = here.map_pixels()
    here.after(lambda: slide(here.place(0.2, 0.5), here.place(0.4, 0.6), here.place(0.6, 0.5)))
    assert here.map_pixels() != before
    assert "source=" in page.url
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("which", ["start", pytest.param("source", marks=pytest.mark.slow)])
def test_start_and_source_are_drawn_by_mouse_and_key(visit, which):
    page = (here := visit()).open()
    page.locator(f"#tool [data-value={which}]").click()
    here.settle()
    here.after(lambda: page.locator("#blank").check())
    blank = here.map_pixels()

    def stroke():
        page.mouse.move(*here.place(0.2, 0.2))
        page.mouse.down()
        page.mouse.move(*here.place(0.8, 0.7), steps=12)
        page.mouse.up()

    here.after(stroke)
    drawn = here.map_pixels()
    assert drawn != blank
    page.locator("#brush-sign [data-value='-1']").click()
    page.locator("#stage").focus()
    here.after(lambda: page.keyboard.press("Enter"))
    assert here.map_pixels() != drawn
    here.after(lambda: page.locator("#clear").click())
    assert f"{which}=" not in page.url


def test_time_settings_and_truth(visit):
    page = (here := visit()).open()
    at_reading = here.map_pixels()
    page.locator("#time").fill("0.5")
    here.settle()
    assert here.map_pixels() != at_reading
    here.after(lambda: page.locator("#truth").check())
    page.locator("#views [data-view=error]").click()
    assert page.locator("#facts dd").count() == 4
    assert page.locator(".true-value").count() == 3
    here.after(lambda: page.locator("#truth").uncheck())
    assert page.locator("#views [data-view=mean]").get_attribute("aria-pressed") == "true"
    here.after(lambda: page.locator("#regime").select_option("helmholtz"))
    assert page.locator("#time").is_disabled()
    assert "κx" in page.locator("#equation").inner_text()
    here.after(lambda: page.locator("#resolution").select_option("64"))
    assert page.evaluate("document.getElementById('map').width") == 64
    here.after(lambda: page.locator("#another").click())
    here.after(lambda: page.locator("#noise").fill("-1"))
    assert page.locator("#noise-now").inner_text() == "0.37"
    for name in ("viridis", "cividis"):
        before = here.map_pixels()
        page.locator("#colours").select_option(name)
        assert here.map_pixels() != before


def test_plays_and_pauses(visit):
    page = (here := visit()).open()
    page.locator("#play").click()
    page.wait_for_function("() => Number(document.getElementById('time').value) > 1.1")
    page.locator("#play").click()
    here.settle()
    assert page.locator("#play").get_attribute("aria-label") == "Play"


def test_a_link_reproduces_the_picture(visit):
    page = (here := visit()).open()
    here.after(lambda: page.mouse.click(*here.place(0.31, 0.77)))
    page.locator("#tool [data-value=start]").click()
    page.locator("#stage").focus()
    here.after(lambda: page.keyboard.press("Enter"))
    page.locator("#views [data-view=std]").click()
    page.locator("#time").fill("0.75")
    here.settle()
    other = visit()
    there = other.open(page.url.removeprefix(here.server))
    assert other.map_pixels() == here.map_pixels()
    assert there.url == page.url


@pytest.mark.parametrize("link", ["#sensors=%%%&pde=<script>&t=nan&n=7", "#start=AAAA&sensors=AA&view=x&=&&&"])
def test_a_damaged_link_still_opens(visit, link):
    (here := visit()).open(link)
    assert here.sensors == 8


def test_has_names_for_screen_readers_and_respects_motion_and_theme(visit):
    page = (here := visit(color_scheme="dark", reduced_motion="reduce")).open()
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, a, canvas[role], [tabindex]')]
        .filter(e => e.checkVisibility() && !(e.ariaLabel || e.textContent.trim() || e.labels?.length))
        .map(e => e.outerHTML)"""
    )
    assert unnamed == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 19, 23)"
    here.after(lambda: page.mouse.click(*here.place(0.5, 0.9)))
    assert page.evaluate("document.getAnimations().length") == 0
    assert "Sensor added" in page.locator("#said").inner_text()
    assert "Field at time 1.000" in page.locator("#map").get_attribute("aria-label")


def test_says_when_the_server_does_not_answer(visit):
    page = (here := visit()).open()
    page.route("**/api/picture", lambda route: route.abort())
    page.mouse.click(*here.place(0.5, 0.9))
    page.wait_for_selector("#note:not([hidden])")
    assert "does not answer" in page.locator("#note").inner_text()
    here.problems.clear()  # the browser itself tells of the request that we broke
    page.unroute("**/api/picture")
    here.after(lambda: page.mouse.click(*here.place(0.6, 0.9)))
    assert page.locator("#note").is_hidden()
