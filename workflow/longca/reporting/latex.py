"""Sections as LaTeX to be \\input: booktabs, and longtable so that a table breaks over pages. No preamble."""

from collections.abc import Sequence

from longca.reporting.sections import Section

_NEEDS = "% Needs \\usepackage{array,booktabs,longtable} in the preamble, and a one-column page.\n"
_SENTENCE = r">{{\raggedright\arraybackslash}}p{{{}\linewidth}}"
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\`{}",
    "†": r"$^{\dagger}$",
    "–": "--",
    "…": r"\ldots{}",
    "×": r"$\times$",
    # After the end of a row these two would be read as its argument.
    "[": "{[}",
    "*": "{*}",
}


def latex(sections: Sequence[Section]) -> str:
    """One captioned table a section; cells escaped, the best of a row bold."""
    return _NEEDS + "\n".join(_section(section) for section in sections)


def escape(text: str) -> str:
    """Text that LaTeX sets as it stands; a character that its fonts may lack is written as its code point."""
    escaped = "".join(_ESCAPES.get(character) or _known(character) for character in text.replace("--", "-\0"))
    return escaped.replace("-\0", "-{-}")


def _known(character: str) -> str:
    return character if " " <= character <= "~" or character == "\0" else f"U+{ord(character):04X}"


def _section(section: Section) -> str:
    if not section.rows:
        return f"\\paragraph{{{escape(section.title)}}} {escape(section.note)}\n"
    header = " & ".join(map(_header, section.headers))
    lines = [
        r"\begingroup\scriptsize\setlength{\tabcolsep}{2pt}",
        rf"\begin{{longtable}}{{{_columns(section)}}}",
        rf"\caption{{{escape(section.title)}}}\\",
        rf"\toprule {header} \\ \midrule \endfirsthead",
        rf"\toprule {header} \\ \midrule \endhead",
        r"\bottomrule \endfoot",
        *(_row(section, index) for index in range(len(section.rows))),
        r"\end{longtable}",
    ]
    note = [escape(section.note), ""] if section.note else []
    return "\n".join([*lines, *note, r"\endgroup", ""])


def _columns(section: Section) -> str:
    if section.numeric:
        return "l" + "r" * (len(section.headers) - 1)
    # The last two columns of a table of texts hold sentences.
    return "l" * (len(section.headers) - 2) + _SENTENCE.format(0.16) + _SENTENCE.format(0.22)


def _header(text: str) -> str:
    """A header, its unit on a line of its own."""
    name, parenthesis, unit = text.partition(" (")
    return rf"\shortstack{{{escape(name)}\\({escape(unit)}}}" if parenthesis else escape(text)


def _row(section: Section, index: int) -> str:
    cells = [escape(text) for text in section.rows[index]]
    bold = [
        rf"\textbf{{{text}}}" if (index, column) in section.best else text
        for column, text in enumerate(cells)
    ]
    return " & ".join(bold) + r" \\"
