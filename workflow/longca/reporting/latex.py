"""Sections as LaTeX to be \\input: booktabs, and longtable so that a table breaks over pages. No preamble."""

from collections.abc import Sequence

from longca.reporting.sections import Section

_NEEDS = "% Needs \\usepackage{array,booktabs,longtable} in the preamble, and a one-column page.\n"
# The text of an article's page on letter paper, the narrowest that is usual; what a letter of \scriptsize takes of it,
# and the space between columns.
_PAGE_PT, _LETTER_PT, _GAP_PT = 345, 4.1, 4
_SENTENCE = r">{{\raggedright\arraybackslash}}p{{{:.1f}pt}}"
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
    parts = _parts(section)
    tables = [_table(section, columns, _part(number, len(parts))) for number, columns in enumerate(parts, 1)]
    note = [escape(section.note), ""] if section.note else []
    return "\n".join([r"\begingroup\scriptsize\setlength{\tabcolsep}{2pt}", *tables, *note, r"\endgroup", ""])


def _table(section: Section, columns: Sequence[int], part: str) -> str:
    header = " & ".join(_header(section.headers[column]) for column in columns)
    lines = [
        rf"\begin{{longtable}}{{{_columns(section, len(columns))}}}",
        rf"\caption{{{escape(section.title)}{part}}}\\",
        rf"\toprule {header} \\ \midrule \endfirsthead",
        rf"\toprule {header} \\ \midrule \endhead",
        r"\bottomrule \endfoot",
        *(_row(section, index, columns) for index in range(len(section.rows))),
        r"\end{longtable}",
    ]
    return "\n".join(lines)


def _part(number: int, parts: int) -> str:
    return f" (part {number} of {parts})" if parts > 1 else ""


def _parts(section: Section) -> list[list[int]]:
    """The columns of each table a section is set as: as many as a page is wide for, the keys before each."""
    every = list(range(len(section.headers)))
    if not section.numeric:
        return [every]
    widths = [_width_pt(section, column) for column in every]
    keys = every[: section.keys]
    room = _PAGE_PT - sum(widths[: section.keys])
    parts: list[list[int]] = [[]]
    for column in every[section.keys :]:
        if parts[-1] and sum(widths[c] for c in parts[-1]) + widths[column] > room:
            parts.append([])
        parts[-1].append(column)
    return [[*keys, *part] for part in parts]


def _width_pt(section: Section, column: int) -> float:
    """At least what a column takes, by its longest text."""
    texts = [row[column] for row in section.rows] + section.headers[column].split(" (")
    return max(map(len, texts)) * _LETTER_PT + _GAP_PT


def _columns(section: Section, number: int) -> str:
    if section.numeric:
        return "l" + "r" * (number - 1)
    # Of a table of texts a column is as wide as its texts while there is room; the long ones wrap in equal shares.
    widths = {column: _width_pt(section, column) for column in range(number)}
    left, wrapped = float(_PAGE_PT), {}
    for taken, column in enumerate(sorted(widths, key=lambda column: widths[column])):
        share = left / (number - taken)
        if widths[column] > share:
            wrapped[column] = share - _GAP_PT
        left -= min(widths[column], share)
    return "".join(_SENTENCE.format(wrapped[c]) if c in wrapped else "l" for c in range(number))


def _header(text: str) -> str:
    """A header, its unit on a line of its own."""
    name, parenthesis, unit = text.partition(" (")
    return rf"\shortstack{{{escape(name)}\\({escape(unit)}}}" if parenthesis else escape(text)


def _row(section: Section, index: int, columns: Sequence[int]) -> str:
    texts = {column: escape(section.rows[index][column]) for column in columns}
    if not section.numeric:
        texts = {column: text.replace(r"\_", r"\_\allowbreak{}") for column, text in texts.items()}
    bold = [
        rf"\textbf{{{text}}}" if (index, column) in section.best else text for column, text in texts.items()
    ]
    return " & ".join(bold) + r" \\"
