"""The page: what it says, that it is safe and needs nothing, and how it looks in a browser."""

import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from report.reading import Page, has_in_turn
from support.browser import CHROMIUM, chromium
from support.report_data import SCRIPT, calibrated
from vennforest.report import check, figures
from vennforest.report.page import render, table
from vennforest.report.sections import Section
from vennforest.report.words import templates
from vennforest.validation.sites import NEW_SITE, POOLED


@pytest.fixture
def cancer_html(cancer, draw_only):
    draw_only()
    files = [{"path": "cells.csv", "sha256": "0f" * 32}]
    advised = {"Train it:": "vennforest fit"}
    return render(cancer, advised, "vennforest report --example breast-cancer", files)


@pytest.fixture
def drawn_page(cancer):
    files = [{"path": "cells.csv", "sha256": "0f" * 32}]
    advised = {"Train it:": "vennforest fit"}
    return render(cancer, advised, "vennforest report --example breast-cancer", files)


def test_the_page_needs_nothing_from_elsewhere_and_escapes_names(nasty, draw_only):
    html = render(nasty, command=f"vennforest report {SCRIPT}")
    page = Page(html)
    assert not any(tag == "script" for tag, _ in page.tags)
    assert SCRIPT not in html.replace("&lt;", "⟨")
    assert any(SCRIPT in text for text in page.text)
    for tag, attrs in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert attrs.get("src", "data:image/svg+xml").startswith("data:image/svg+xml")
        assert tag != "img" or attrs["alt"]
        for name in ("href", "xlink:href"):
            assert attrs.get(name, "#").startswith("#")
        assert not any(name.startswith("on") for name in attrs)
    assert not re.search(r"url\((?!#)|@import", html)
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    draw_only()
    notebook = nasty._repr_html_()
    ((tag, attributes),) = Page(notebook).tags
    assert tag == "iframe" and attributes["srcdoc"].startswith("<!DOCTYPE html>")
    assert SCRIPT not in notebook


@pytest.mark.parametrize(
    ("columns", "titles"),
    [
        ("THRESHOLDS", {"sensitivity": "Sensitivity", "specificity": "Specificity",
                      "positive_value": "Positive pred. value",
                      "negative_value": "Negative pred. value", "sure_yes": "Sure yes",
                      "sure_no": "Sure no"}),
        ("SUBGROUPS", {"expected": "Mean probability", "adjusted": "p if calibrated, adjusted"}),
        ("LEVELS", {"bound_low": "Lower bound", "bound_high": "Upper bound",
                  "confidence_low": "95% from", "confidence_high": "to"}),
    ],
)  # fmt: skip
def test_a_column_shows_what_its_title_says(columns, titles):
    columns = getattr(templates().get_template("columns.html.j2").module, columns)
    keys = [*(key for key, _, _ in columns), "pvalue"]
    frame = pd.DataFrame({key: [0.3 + i / 20] for i, key in enumerate(keys)})
    whole = table(frame, columns, ["row"])
    for key, title in titles.items():
        alone = table(frame[[key]], [(key, title, form) for k, _, form in columns if k == key], [0])
        assert whole[title].tolist() == alone[title].tolist(), title


def test_the_page_says_what_the_numbers_say(cancer, cancer_html):
    text = " ".join(" ".join(Page(cancer_html).text).split())
    m = cancer.methods
    numbers = m.loc["none", "brier"], m.loc["venn-abers", "auc"], m.loc["platt", "log_loss"]
    commands = "vennforest fit", "vennforest report --example breast-cancer", "Train it:"
    parts = [cancer.verdict.sentence, *commands, "0f" * 32, "Always “operate”"]
    for part in (*parts, *(f"{number:.3f}" for number in numbers)):
        assert part in text, part
    n_infinite = int(np.isinf(m["log_loss"]).sum())
    assert ("∞" in text) == bool(n_infinite)
    line = m.loc[cancer.verdict.method]
    assert f"{line['slope']:.2f} ({line['slope_low']:.2f} to {line['slope_high']:.2f})" in (
        text.replace("−", "-")
    )
    n_certain = int(cancer.methods.loc["none", "certain"])
    (of_methods,) = re.findall("are in neither: ([^<]*)[.]</p>", cancer_html)
    assert n_certain > 0 and f"{n_certain} of Raw forest" in of_methods.split(", ")


def test_many_classes_are_drawn_in_part(monkeypatch, draw_only):
    draw_only()
    monkeypatch.setattr("vennforest.report.figures.MAX_CLASS_DIAGRAMS", 2)
    y = np.repeat(np.arange(4), 60)
    html = render(check(y, np.random.default_rng(0).dirichlet(np.ones(4), 240)))
    assert has_in_turn(re.sub("<.*?>", " ", html), [2, 4])  # that these are not all classes
    assert html.count('alt="Calibration of class') == 2


def test_a_method_has_one_colour_in_all_pictures(monkeypatch):
    y = np.repeat(np.arange(3), 60)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 180)
    evaluation = check(y, {"worse": p, "better": (p + np.eye(3)[y]) / 2})
    paints = [figures.pictures(evaluation.findings, evaluation.predictions)["calibration"].paint]
    monkeypatch.setattr(figures, "draw", lambda name, picture: paints.append(picture.paint))
    figures.classes(evaluation.findings, evaluation.predictions)
    colours = []
    for paint in paints:
        ax = Figure().subplots()
        paint(ax)
        handles, labels = ax.get_legend_handles_labels()
        lines = zip(labels, handles, strict=True)
        colours.append({label.splitlines()[0]: line.get_color() for label, line in lines})
    assert len(colours) == 4 and all(other == colours[0] for other in colours)
    assert colours[0]["“better”"] != colours[0]["“worse”"]


def test_rare_events_are_told_apart(draw_only):
    draw_only("calibration")
    y, p, _ = calibrated(6000, 17, strength=1.5, share=0.002)
    evaluation = check(y, {"good": p, "worse": np.sqrt(p * p.mean())})
    text = render(evaluation)
    assert " 0.0 percentage points" not in text and "logarithmic" in text
    first, second = (f"{m.brier:.6f}" for m in evaluation.findings.measures.values())
    assert first != second and first in text and second in text


def test_subgroups_over_time_have_a_picture(draw_only):
    draw_only("time-0")
    y, p, rng = calibrated(600, 3)
    days = pd.date_range("2023-01-01", periods=600, freq="12h").strftime("%Y-%m-%d")
    evaluation = check(y, p, by={"day": days, "site": rng.choice(["a", "b"], 600)})
    html = render(evaluation)
    assert html.count('alt="Observed and expected by') == 1
    assert re.findall("<h3>By (.*?)</h3>", html) == ["day, by month", "site"]


def seen_in_browser(tmp_path, page, *options):
    """What a script sees of the page, which the page's own policy would not let run."""
    policy = "default-src 'none'"
    html = page.read_text("utf-8")
    assert html.count(policy) == 1
    html = html.replace(policy, f"{policy}; script-src 'unsafe-inline'")
    script = """<script>
      const all = [...document.querySelectorAll("details")];
      const colour = (name) => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number);
      const seen = {width: document.documentElement.scrollWidth,
        paper: colour("backgroundColor").slice(0, 3), ink: colour("color").slice(0, 3),
        pictures: [...document.querySelectorAll("figure img")]
          .map((image) => image.getBoundingClientRect().width).filter((width) => width > 0)};
      for (const details of all) details.open = true;
      seen.cut = [...document.querySelectorAll(".scroll")]
        .filter((box) => box.scrollWidth > box.clientWidth + 1)
        .map((box) => box.closest("section").id);
      document.title = JSON.stringify(seen);
    </script></body>"""
    changed = page.with_name("changed.html")
    changed.write_text(html.replace("</body>", script), "utf-8")
    dump = chromium(tmp_path, changed, *options, "--dump-dom")
    return json.loads(re.search(r"<title>(\{.*?)</title>", dump.stdout).group(1))


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to open the page in")
def test_in_a_browser(drawn_page, nasty, tmp_path):
    page = tmp_path / "page.html"
    nasty.to_html(page)
    dump = chromium(tmp_path, page, "--dump-dom")
    assert "CONSOLE" not in dump.stderr
    seen = seen_in_browser(tmp_path, page, "--window-size=500,900", "--force-dark-mode")
    assert seen["width"] <= 500  # tables scroll, the page does not
    assert min(seen["pictures"]) > 0.85 * seen["width"]
    dark, pale = seen["paper"], seen["ink"]
    page.write_text(drawn_page, "utf-8")
    seen = seen_in_browser(tmp_path, page, "--window-size=1200,900")
    assert min(seen["pictures"]) >= 480
    assert seen["cut"] == []  # at this width every column of every table is seen
    assert sum(dark) < 150 < 600 < sum(seen["paper"])
    assert sum(seen["ink"]) < 200 < 500 < sum(pale)


def printed(tmp_path, page):
    """The text of each sheet."""
    pdf = tmp_path / "page.pdf"
    chromium(tmp_path, page, f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    command = ["pdftotext", "-layout", pdf, "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [sheet for sheet in text.split("\f") if sheet.strip()]


PRINTS = pytest.mark.skipif(
    CHROMIUM is None or shutil.which("pdftotext") is None, reason="no Chromium or no pdftotext"
)


@pytest.mark.browser
@PRINTS
def test_print_is_short(drawn_page, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(drawn_page, "utf-8")
    sheets = printed(tmp_path, page)
    assert "AUC" in sheets[0]  # no empty first page
    lines = "\n".join(sheets).splitlines()
    row = next(line for line in lines if line.split()[:1] == ["Temperature"])
    assert len(row.split()) == 8  # the name and every measure, down to the last
    assert len(sheets) <= 6
    text = " ".join(" ".join(sheets).split())
    assert "1 − Brier score / that of the base rate" in text  # closed on the screen
    assert "paired" in text or "corrected resampled t-test" in text
    assert all(len(sheet.split("\n")) > 8 for sheet in sheets)


def test_a_section_has_sentences_a_table_and_a_picture(cancer, cancer_html, draw_only):
    draw_only()
    columns = ["n", "events"]
    ends = ["", "_low", "_high"]
    columns += [f"{key}{end}" for key in ("observed_expected", "slope", "auc") for end in ends]
    frame = pd.DataFrame(
        [[1200, 400] + [0.5, 0.4, 0.6] * 3, [3, 0] + [np.nan] * 9] * 2,
        index=pd.Index(["A", SCRIPT, POOLED, NEW_SITE], name="Site"),
        columns=columns,
    )
    pooled = dict.fromkeys(["observed_expected", "slope", "auc"], 2)
    numbers = {"intervals": 4, "has_groups": False, "pooled": pooled}
    section = Section(frame, numbers, {"slope": [SCRIPT]})
    evaluation = replace(cancer, findings=replace(cancer.findings, sections={"sites": section}))
    page = render(evaluation)
    text = "|".join(part.strip() for part in Page(page).text if part.strip())
    rows = "|A|1,200|400|0.50 (0.40\u00a0to\u00a00.60)|", "|3|0|–|"
    for part in (*rows, "Off beyond chance: slope in <"):
        assert part in text, part
    assert {"#sites"} <= Page(page).links
    assert page.count("<figure") == cancer_html.count("<figure") + 1
    assert SCRIPT not in page
    summary = json.loads(json.dumps(evaluation.summary()))
    assert summary["sections"]["sites"]["frame"][1]["slope"] is None


def test_a_page_without_further_reasons_has_no_empty_section(cancer, draw_only):
    draw_only()
    first = dict(list(cancer.verdict.reasons.items())[:3])
    findings = replace(cancer.findings, notes=[])
    verdict = replace(cancer.verdict, reasons=first)
    page = render(replace(cancer, verdict=verdict, findings=findings))
    assert {"why", "#why"}.isdisjoint({*Page(page).ids, *Page(page).links})
    noted = replace(cancer, findings=replace(findings, notes=["One."]))
    assert {"why"} <= set(Page(render(noted)).ids)
