"""Reading forms: what texts of others may not do to Markdown and LaTeX, and how numbers are written."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longca.reporting.latex import escape, latex
from longca.reporting.markdown import markdown
from longca.reporting.sections import Section
from longca.reporting.words import digits, plain, status_words

ODD = "50% of_it & <b>#1</b> $x^2$ {~} a|b *c* \\d [e] `f` –"


def section(text: str) -> Section:
    """One row of texts."""
    return Section(text, ("Kernel", text), (("naive", text),), numeric=False, note=text)


def test_markdown_keeps_a_pipe_in_its_cell_and_html_as_text() -> None:
    lines = markdown([section(ODD)]).splitlines()
    row = next(line for line in lines if line.startswith("| naive"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
    assert "<b>" not in "\n".join(lines)
    assert r"50% of_it &amp; &lt;b&gt;#1&lt;/b&gt; $x^2$ {~} a\|b \*c\* \\d \[e\] \`f\` –" in row


def test_latex_escapes_every_special_character() -> None:
    assert escape(ODD) == (
        r"50\% of\_it \& \textless{}b\textgreater{}\#1\textless{}/b\textgreater{} \$x\textasciicircum{}2\$ "
        r"\{\textasciitilde{}\} a\textbar{}b {*}c{*} \textbackslash{}d {[}e] "
        r"\`{}f\`{} --"
    )
    assert escape("--flag 中") == "-{-}flag U+4E2D"


@given(st.text())
def test_no_text_leaves_its_latex_cell(text: str) -> None:
    escaped = escape(text)
    assert escaped.isascii()
    bare = re.sub(r"\\[A-Za-z]+\{\}|\\[&%$#_{}]|\\`\{\}|\$[^$]*\$", "", escaped)
    assert not set(bare) & set("\\&%$#_^~")
    assert re.sub(r"\{[-*[]\}", "", bare).count("{") == 0


def test_latex_is_input_as_it_is_one_table_a_section() -> None:
    text = latex([section("a"), section("b")])
    assert "documentclass" not in text and "\\begin{document}" not in text
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") == 2
    assert text.count(r"\toprule") == 4 and text.count(r"\bottomrule") == 2
    assert text.count(r"\begingroup") == text.count(r"\endgroup")


def test_a_section_without_rows_says_why_in_both_forms() -> None:
    empty = Section("Wrong cases", ("Kernel",), (), note="None was wrong.")
    assert "None was wrong." in markdown([empty])
    assert "None was wrong." in latex([empty])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123456, "0.0123"),
        (0.5, "0.500"),
        (1.0, "1.00"),
        (9.996, "10.0"),
        (99.96, "100"),
        (123.4, "123"),
        (1234.5, "1234"),
        (98765.0, "98765"),
        (0.0, "0"),
        (1.5e-7, "1.50e-07"),
    ],
)
def test_numbers_have_three_significant_digits_and_no_exponent_a_reader_must_undo(
    value: float, text: str
) -> None:
    assert digits(value) == text


def test_texts_become_one_plain_line() -> None:
    assert plain("\x1b[31mTraceback\x1b[0m\n  File\t'x'\x00") == "Traceback File 'x'"
    assert len(plain("x" * 1000)) == 240 and plain("x" * 1000).endswith("…")


def test_statuses_that_differ_stand_with_their_counts_the_worst_first() -> None:
    assert status_words({"ok": 3}) == "ok"
    assert (
        status_words({"ok": 1, "out_of_memory": 1, "wrong": 2})
        == "wrong 2 of 4, out of memory 1 of 4, ok 1 of 4"
    )
