"""Columns found by where they stand."""

from __future__ import annotations

import pytest

from dari.terminal.output_parsers import parse_structured
from dari.text.width import split_cells, text_width


def table(text: str) -> tuple[list[str] | None, list[list[str]] | None]:
    parsed = parse_structured(text, hint="table")
    return parsed.headers, parsed.rows


def test_columns_aligned_left_keep_values_with_blanks_and_empty_cells() -> None:
    text = (
        "NAME          READY   STATUS             AGE\n"
        "web-7f9c      1/1     Running            2d\n"
        "job-x                 Image Pull Error   5m\n"
    )
    assert table(text) == (
        ["NAME", "READY", "STATUS", "AGE"],
        [["web-7f9c", "1/1", "Running", "2d"], ["job-x", "", "Image Pull Error", "5m"]],
    )


def test_columns_aligned_right_are_found_under_their_names() -> None:
    text = (
        "               total        used        free\n"
        "Mem:            23Gi       3.1Gi        16Gi\n"
        "Swap:             0B          0B          0B\n"
    )
    assert table(text) == (
        ["", "total", "used", "free"],
        [["Mem:", "23Gi", "3.1Gi", "16Gi"], ["Swap:", "0B", "0B", "0B"]],
    )


def test_names_one_blank_apart_are_columns_when_numbers_stand_under_them() -> None:
    text = (
        "NAME  MAJ:MIN RM  SIZE RO TYPE MOUNTPOINTS\nzram0 253:0    0    0B  0 disk\nvda   254:0    0  256G  0 disk /\n"
    )
    headers, rows = table(text)
    assert headers == ["NAME", "MAJ:MIN", "RM", "SIZE", "RO", "TYPE", "MOUNTPOINTS"]
    assert rows == [["zram0", "253:0", "0", "0B", "0", "disk", ""], ["vda", "254:0", "0", "256G", "0", "disk", "/"]]


def test_a_name_of_two_words_stays_one_column() -> None:
    headers, rows = table("VOLUME   MOUNTED ON   FREE SPACE\nroot     /            12G\ndata     /srv         3G\n")
    assert headers == ["VOLUME", "MOUNTED ON", "FREE SPACE"]
    assert rows == [["root", "/", "12G"], ["data", "/srv", "3G"]]


def test_wide_characters_take_two_cells() -> None:
    text = "이름        크기   NOTE\n가나다라    10     첫째 줄\nabc         200    x\n"
    assert table(text) == (["이름", "크기", "NOTE"], [["가나다라", "10", "첫째 줄"], ["abc", "200", "x"]])


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("가", 2), ("e\u0301", 1), ("ｱ", 1), ("Ａ", 2), ("日本", 4), ("", 0)]
)
def test_widths_are_those_of_a_terminal(text: str, width: int) -> None:
    assert text_width(text) == width == len(split_cells(text))


def test_dashes_under_the_names_show_the_columns() -> None:
    text = (
        "Package         Version Location\n--------------- ------- --------\n"
        "annotated-types 0.7.0\nshop            1.0     /srv/my shop\n"
    )
    headers, rows = table(text)
    assert headers == ["Package", "Version", "Location"]
    assert rows == [["annotated-types", "0.7.0", ""], ["shop", "1.0", "/srv/my shop"]]
    assert parse_structured(text).confidence > 0.8


@pytest.mark.parametrize(
    "text",
    [
        "+----+-------+\n| id | name  |\n+----+-------+\n|  1 | a | b |\n|  2 |       |\n+----+-------+\n2 rows\n",
        "┌────┬───────┐\n│ id │ name  │\n├────┼───────┤\n│  1 │ a | b │\n│  2 │       │\n└────┴───────┘\n",
        "┏━━━━┳━━━━━━━┓\n┃ id ┃ name  ┃\n┡━━━━╇━━━━━━━┩\n│  1 │ a | b │\n│  2 │       │\n└────┴───────┘\n",
        " id | name\n----+-------\n  1 | a \\| b\n  2 |\n(2 rows)\n",
        "| id | name |\n|---:|:-----|\n| 1 | a \\| b |\n| 2 | |\n",
    ],
    ids=["mysql", "box", "rich", "psql", "markdown"],
)
def test_drawn_tables_are_read_whatever_draws_them(text: str) -> None:
    parsed = parse_structured(text)
    assert (parsed.type, parsed.parser) == ("table", "table")
    assert parsed.headers == ["id", "name"]
    assert parsed.rows == [["1", "a | b"], ["2", ""]]
    assert parsed.confidence > 0.7


def test_a_grid_joins_the_lines_of_a_wrapped_cell() -> None:
    text = (
        "+----+------+\n| id | name |\n+====+======+\n| 1  | long |\n|    | name |\n+----+------+\n"
        "| 2  | b    |\n+----+------+\n"
    )
    assert table(text) == (["id", "name"], [["1", "long name"], ["2", "b"]])


def test_wide_characters_in_a_drawn_table_do_not_move_its_columns() -> None:
    text = "+--------+----+\n| 이름   | n  |\n+--------+----+\n| 가|나  | 1  |\n+--------+----+\n"
    assert table(text) == (["이름", "n"], [["가|나", "1"]])


def test_lines_before_and_after_a_table_are_left_out_and_told() -> None:
    text = "Listing volumes...\n\nNAME   SIZE   USED\nvda    256    12\nvdb    10     3\n\nDone.\n"
    parsed = parse_structured(text)
    assert parsed.headers == ["NAME", "SIZE", "USED"] and parsed.lines == [(3, 5)]
    assert parsed.notes == ["2 other lines were left out"]


def test_a_title_directly_above_the_names_is_no_row() -> None:
    parsed = parse_structured(
        "user@host:~$ kubectl get pods\nNAME   READY   AGE\nweb    1/1     2d\napi    0/1     3m\n"
    )
    assert parsed.headers == ["NAME", "READY", "AGE"] and len(parsed.rows or []) == 2


def test_a_row_pushed_out_of_line_still_fills_its_columns() -> None:
    headers, rows = table("NAME  SIZE  KIND\na-very-long-name  10  x\nb  20  y\n")
    assert headers == ["NAME", "SIZE", "KIND"]
    assert rows == [["a-very-long-name", "10", "x"], ["b", "20", "y"]]


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps.\nOver the lazy dog it goes.\nAnd again  it does.\n",
        "terminate called\n  what():  bad cart\nbash: line 1: 22731 Aborted                 ./app\n",
        "def f(x):\n    return x\n\nclass A:\n    pass\n",
    ],
)
def test_prose_code_and_messages_are_no_tables(text: str) -> None:
    assert parse_structured(text).type != "table"
