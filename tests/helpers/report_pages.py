"""A report as a test reads it: its text, its addresses, and the numbers behind its maps."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser

import numpy as np


class Page(HTMLParser):
    """Tags, text and addresses of a page; refuses one whose tags do not nest."""

    VOID = {"meta", "link", "img", "source", "br", "input"}  # noqa: RUF012

    def __init__(self, html: str):
        super().__init__()
        self.html, self.open, self.tags, self.ids, self.addresses = html, [], [], [], []
        self.pieces, self.scripts, self.labels = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.pieces).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attributes = dict(attrs)
        if tag not in self.VOID:
            self.open.append((tag, attributes.get("type")))
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.labels += [attributes["aria-label"]] if "aria-label" in attributes else []
        self.addresses += [attributes[name] for name in ("src", "srcset", "href", "action") if name in attributes]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ("", None)
        if inside == ("script", "application/json"):
            self.scripts.append(json.loads(data))
        elif inside[0] not in ("style", "script"):
            self.pieces.append(data)

    def layers(self, number: int = 0) -> dict[str, np.ndarray]:
        """The numbers of the maps of a viewer, by the names of the layers; axes ``(time, y, x)``."""
        data = self.scripts[number]
        return {layer["name"]: unpacked(layer, (len(data["times"]), *data["shape"])) for layer in data["layers"]}


def unpacked(layer: dict, shape: tuple[int, ...]) -> np.ndarray:
    codes = np.frombuffer(base64.b64decode(layer["data"]), "<u2").reshape(shape)
    return np.where(codes == 65535, np.nan, layer["low"] + codes * layer["step"])
