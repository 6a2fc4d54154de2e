"""The check of words finds what it is for, and nothing on a plain page."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def words():
    spec = importlib.util.spec_from_file_location("check_words", ROOT / "scripts/check_words.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PLAIN = """# A page

The model is reliable, see [this](page.md).

    vennforest show model.skops
"""


def test_a_plain_page_has_nothing(words, tmp_path):
    (tmp_path / "page.md").touch()
    known = {"show": {"--json"}}
    assert not list(words.long_sentences(PLAIN))
    assert not list(words.odd_words(PLAIN))
    assert not list(words.dead_links(tmp_path / "a.md", PLAIN, set()))
    assert not list(words.unknown_options(PLAIN, known))


def test_findings_have_their_lines(words, tmp_path):
    long = "word " * 41 + "end.\n"
    assert [line for line, _ in words.long_sentences(f"# A\n\n{long}")] == [3]
    assert not list(words.long_sentences(f"```python\n{long}```\n"))
    assert not list(words.long_sentences(f"    {long}"))
    assert [line for line, _ in words.odd_words("Fit it\nanew.\n")] == [2]
    assert not list(words.odd_words("They renewed it.\n"))
    assert [line for line, _ in words.dead_links(tmp_path / "a.md", PLAIN, set())] == [3]
    typed = "    vennforest shwo m.skops\n    vennforest show m.skops --jason\n"
    found = [message for _, message in words.unknown_options(typed, {"show": {"--json"}})]
    assert found == ["there is no command shwo", "show has no option --jason"]


def test_commands_of_the_library_are_found(words):
    known = words.commands()
    assert {"fit", "predict", "report", "calibrate", "apply", "show", "watch"} <= set(known)
    assert "--target" in known["fit"]
