"""The page as another parser sees it: the standard library's, which knows nothing of how it was made."""

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "img", "input", "br", "link"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def every(self, tag: str = "", **wanted: str) -> list["Element"]:
        """All elements below this one with the tag and attributes; `kind` stands for class."""
        named = {("class" if key == "kind" else key.replace("_", "-")): value for key, value in wanted.items()}
        found = []
        for child in self.children:
            same = all(value in child.attributes.get(key, "").split() for key, value in named.items())
            if (not tag or child.tag == tag) and same:
                found.append(child)
            found += child.every(tag, **wanted)
        return found

    @property
    def text(self) -> str:
        return " ".join(" ".join([*self.texts, *(child.text for child in self.children)]).split())


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("root", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {key: value or "" for key, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.open[-1].texts.append(data)


def parse(page: str) -> Element:
    builder = _Builder()
    builder.feed(page)
    builder.close()
    assert len(builder.open) == 1, "an element was left open"
    return builder.root


def table(root: Element, name: str) -> list[list[Element]]:
    """The body's cells of the table called `name`."""
    return bodies(root, name)[0]


def bodies(root: Element, name: str) -> list[list[list[Element]]]:
    """The cells of all bodies of the table called `name`: what sorts, and what stays below."""
    (found,) = root.every("table", id=name)
    return [[row.children for row in body.every("tr")] for body in found.every("tbody")]


def data(root: Element) -> Any:
    """The numbers behind the plots."""
    (script,) = root.every("script", id="data")
    return json.loads(script.text)
