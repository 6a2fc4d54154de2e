"""What sentences and pages say, so that tests need not repeat the words around it."""

import re
from collections import defaultdict
from html.parser import HTMLParser

import pytest


def numbers_in(text):
    """Return the numbers of a text in order: "1,200 rows, −0.31%" has 1200 and −0.31."""
    parts = re.findall(r"(?<![\w.])[−-]?\d[\d,]*(?:\.\d+)?", text)
    return [float(part.replace(",", "").replace("−", "-")) for part in parts]


def has_in_turn(text, values, tolerance=0.0):
    """Return whether numbers follow each other in a text, to within a tolerance."""
    numbers, n = numbers_in(text), len(values)
    expected = pytest.approx(list(values), rel=0, abs=tolerance)
    return any(numbers[i : i + n] == expected for i in range(len(numbers) - n + 1))


def named_in(text):
    """Return the options and quoted values of a text: "--id must name 'a'" has --id and a."""
    quoted = re.findall(r"(?<!\w)'(.*?)'(?!\w)", text)
    return {*quoted, *re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)}


class Page(HTMLParser):
    """Tags with attributes of a page, its text, and the texts that begin with each tag."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.text_of = [], [], defaultdict(list)
        self.feed(text)
        attributes = [attributes for _, attributes in self.tags]
        self.ids = [each["id"] for each in attributes if "id" in each]
        self.links = {each["href"] for tag, each in self.tags if tag == "a"}

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)
        if self.tags:
            self.text_of[self.tags[-1][0]].append(data.strip())
