"""json-table: the table has the values of the file."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from shipped.place import ESCAPES, Place
from tables import table

pytestmark = pytest.mark.sample(1)

TEXTS = table(__file__, "TEXTS")
RECORDS = [{"name": "Ada", "age": 36}, {"name": "张衡", "city": "南阳"}]


def records(seed: int, count: int) -> list[dict[str, Any]]:
    """Made-up records, each with one to five of the names."""
    dice = random.Random(seed)
    values = (*TEXTS, 0, -17, 2.5, 1e21, True, False, None, [1, "x|y"], {"k": ["|"]})
    names = ("id", "名字", "note|s", "tags", "value")
    return [{name: dice.choice(values) for name in dice.sample(names, dice.randint(1, 5))} for _ in range(count)]


def cells(table: str) -> list[list[str]]:
    """A table's cells as a Markdown reader sees them: a backslash escapes the next character."""
    rows = [re.findall(r"\| ((?:\\.|[^\\|])*?) (?=\|)", line) for line in table.splitlines()]
    return [[unescaped(cell) for cell in row] for row in rows]


def unescaped(cell: str) -> str:
    plain = re.sub(r"\\(.)", r"\1", cell)
    return plain.replace("<br>", "\n").replace("&lt;", "<").replace("&amp;", "&")


def expected(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("form", ["document", "lines", "pretty", "wrapped"])
@pytest.mark.parametrize("seed", range(3))
def test_every_value_stands_in_its_row_and_column(place: Place, form: str, seed: int) -> None:
    held = records(seed, 120)
    texts = {
        "document": json.dumps(held),
        "lines": "\r\n".join(json.dumps(record, ensure_ascii=False) for record in held),
        "pretty": json.dumps(held, indent=2, ensure_ascii=False),
        "wrapped": json.dumps({"total": 120, "items": held}),
    }
    place.write("data.json", texts[form])
    data = place.data("/json-table @data.json")
    names = list(dict.fromkeys(name for record in held for name in record))
    assert (data["rows"], data["columns"], len(data["files"])) == (120, names, 1)
    table = place.root / data["files"][0]
    head, _, *body = cells(table.read_text(encoding="utf-8"))
    assert head == names
    assert body == [[expected(record.get(name)) for name in names] for record in held]


def test_columns_that_are_wanted_stand_alone_and_in_order(place: Place) -> None:
    path = place.write("people.json", json.dumps(RECORDS))
    assert place.data("/json-table @people.json columns=city,name")["columns"] == ["city", "name"]
    place.script("json-table", "--columns", "city，name", "--", path)
    assert place.written("table.md") == "| city | name |\n| --- | --- |\n|  | Ada |\n| 南阳 | 张衡 |\n"


def test_a_column_of_numbers_stands_to_the_right(place: Place) -> None:
    place.script("json-table", place.write("n.json", '[{"a": 1, "b": true}, {"a": null, "b": 2}]'))
    assert place.written("table.md").splitlines()[1] == "| ---: | --- |"


@pytest.mark.parametrize("text", ["把 @people.json 转成表格", "turn this json file into a table: @people.json"])
def test_it_is_found_by_its_words(place: Place, text: str) -> None:
    place.write("people.json", json.dumps(RECORDS))
    assert place.data(text)["rows"] == 2


def test_without_a_file_it_is_asked_for(place: Place) -> None:
    report = place.ask("turn this json file into a table")
    assert (report.state, report.data["required"]) == ("pending", ["input"])


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b'{"a": 1}', 1),
        (b'{"a": 1}\n', 1),
        (b'[1, "x", [2, 3]]', 3),
        (b'\xef\xbb\xbf[{"a": 1}]', 1),
        (b'["\xe4"]', 1),
        ('[{"a": "字"}]'.encode("utf-16"), 1),
        (b'{"a": [{"b": 1}, {"b": 2}]}', 2),
        (b'{"site": "x", "rooms": [{"b": 1}, {"b": 2}]}', 2),
        (b'{"name": "x", "tags": [{"b": 1}], "links": [{"c": 1}]}', 1),
        (b'{"name": {"first": "x"}, "tags": [{"b": 1}, {"b": 2}]}', 1),
        (b'{\n"a": 1\n}\n{\n"a": 2\n}\n', 2),
        (b'{"a": 1}\n\n  \n{"a": 2}', 2),
        (b"[NaN, 1e400, -0]", 3),
    ],
)
def test_each_form_of_json_gives_the_expected_number_of_rows(place: Place, text: bytes, rows: int) -> None:
    assert place.script("json-table", place.write("data", text)).data["rows"] == rows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"[]", "nothing in it"),
        (b"{}\n{bad", "line 2 is no JSON"),
        (b'{"a": 1}\n{"a": 2}\n[1, 2\n', "line 3 is no JSON"),
        (b'[\n{"a": 1},\n{"a": }\n]', "line 3, column 7"),
        (b"hello", "the file is no JSON, line 1"),
        (b"\xff\x00", "the file is no JSON"),
        (b"[" * 100_000, "cannot be read: RecursionError"),
        (b"[" + b"9" * 5_000 + b"]", "cannot be read: ValueError"),
        (json.dumps({str(at): 1 for at in range(600)}).encode(), "600 columns, more than 500"),
    ],
)
def test_a_json_file_without_a_usable_table_is_reported_in_one_line(place: Place, text: bytes, said: str) -> None:
    assert said in place.script("json-table", place.write("data", text)).complaint


@pytest.mark.parametrize("depth", [100, 900, 980, 985, 990, 995, 2_000])
def test_deeply_nested_values_cause_no_traceback(place: Place, depth: int) -> None:
    done = place.script("json-table", place.write("data", "[" * depth + "]" * depth))
    assert done.data["rows"] == 1 if done.code == 0 else done.complaint


def test_an_unknown_column_is_an_error_that_lists_all_columns(place: Place) -> None:
    said = place.script("json-table", "--columns", "nmae", place.write("data", json.dumps(RECORDS))).complaint
    assert said == "there is no column 'nmae': there are 'name', 'age', 'city'"


def test_a_file_that_is_not_there_is_named(place: Place) -> None:
    assert "'nowhere' cannot be read" in place.script("json-table", "nowhere").complaint


def test_nothing_that_steers_a_terminal_is_left(place: Place) -> None:
    place.script("json-table", place.write("data", json.dumps([{f"k{ESCAPES}": f"v{ESCAPES}", "half": "\ud800"}])))
    assert place.written("table.md") == "| kred  | half |\n| --- | --- |\n| vred  | ? |\n"


def test_a_cell_that_is_too_long_is_cut_and_counted(place: Place) -> None:
    data = place.script("json-table", place.write("data", json.dumps([{"a": "x" * 5_000, "b": "y"}]))).data
    assert (data["cut"], len(place.written("table.md").splitlines()[2])) == (1, 2_000 + 1 + len("|  | y |"))


@pytest.mark.ci
def test_a_large_file_of_lines_is_not_held_in_memory(place: Place) -> None:
    line = json.dumps({"id": 12_345, "text": "x" * 1_000}) + "\n"
    path = place.write("large.jsonl", line * 60_000)  # 62 MB
    assert place.script("json-table", path, memory=110 * 2**20).data["rows"] == 60_000


def test_a_line_without_an_end_is_refused(place: Place) -> None:
    path = place.write("large.jsonl", '{"a": 1}\n"' + "x" * (17 * 2**20))
    assert place.script("json-table", path).complaint == "line 2 is longer than 16 MiB"


EVERYDAY = (  # language, file, encoding, columns that are wanted, document or lines
    ("en", "people.json", "utf-8", "", '[{"name": "Ada", "age": 36}, {"name": "Zhang", "age": 61}]'),
    ("en", "people.json", "utf-8", "name", '[{"name": "Ada", "age": 36}, {"name": "Zhang", "age": 61}]'),
    ("en", "people.json", "utf-8", "Age, Name", '[{"name": "Ada", "age": 36}, {"name": "Zhang", "age": 61}]'),
    ("en", "exports/one.json", "utf-8", "", '{"id": 1, "name": "only one"}'),
    ("en", "wrapped.json", "utf-8", "", '{"total": 2, "items": [{"a": 1}, {"b": 2}]}'),
    ("en", "events.jsonl", "utf-8", "", '{"t": 1, "e": "in"}\n{"t": 2, "e": "out"}\n'),
    ("en", "with bom.json", "utf-8-sig", "", '[{"a": true}, {"a": null}]'),
    ("en", "wide.json", "utf-16", "", '[{"a": 1.5}, {"a": -2}]'),
    ("en", "café.json", "cp1252", "", '[{"drink": "café crème", "où": "là"}]'),
    ("en", "nested.json", "utf-8", "", '[{"a": {"b": [1, 2]}, "c": "x|y"}]'),
    ("zh", "人员.json", "utf-8", "", '[{"姓名": "张衡", "城市": "南阳"}, {"姓名": "祖冲之", "城市": ""}]'),
    ("zh", "导出/人员 表.json", "utf-8", "城市，姓名", '[{"姓名": "张衡", "城市": "南阳"}, {"姓名": "祖冲之"}]'),
    ("zh", "旧编码.json", "gb18030", "", '[{"商品": "蜡烛", "价格": 12.5}]'),
    ("zh", "旧编码.jsonl", "gb18030", "商品", '{"商品": "蜡烛", "价格": 1}\n{"商品": "杯子", "价格": 2}\n'),
    ("zh", "宽字符.json", "utf-16", "", '[{"键": "值"}]'),
    ("zh", "签名.jsonl", "utf-8-sig", "", '{"键": "一"}\n{"键": "二"}\n'),
    ("zh", "转义.json", "utf-8", "", '[{"k": "\\u4f60\\u597d"}]'),
    ("zh", "返回.json", "utf-8", "code", '{"data": [{"code": 1, "msg": "好"}, {"code": 2, "msg": "坏"}]}'),
    ("zh", "english.json", "utf-8", "", '[{"a": 1}]'),
    (
        "zh",
        "多行.json",
        "utf-8",
        "",
        json.dumps([{"序": at, "名": f"第{at}项"} for at in range(1_500)], ensure_ascii=False),
    ),
)


@pytest.mark.parametrize(
    ("language", "file", "encoding", "wanted", "text"), EVERYDAY, ids=lambda value: str(value)[:16]
)
def test_an_everyday_file_becomes_the_whole_table(
    place: Place, language: str, file: str, encoding: str, wanted: str, text: str
) -> None:
    place.write(file, text.encode(encoding))
    words = ["--columns", wanted] if wanted else []
    data = place.answer("json-table", *words, "--", file, language=language)
    held = [json.loads(line) for line in text.splitlines()] if file.endswith("l") else json.loads(text)
    held = (
        next((value for value in held.values() if isinstance(value, list)), [held]) if isinstance(held, dict) else held
    )
    there = list(dict.fromkeys(name for record in held for name in record))
    names = [next(n for n in there if n.lower() == w.strip().lower()) for w in re.split("[,，]", wanted) if w] or there
    assert (data["rows"], data["columns"], data["encoding"]) == (len(held), names, encoding.removesuffix("-sig"))
    head, _, *body = cells(data["text"])
    assert (head, body) == (names, [[expected(record.get(name)) for name in names] for record in held])
    assert data["text"] + "\n" == place.written("table.md")
    rows, columns = len(held), len(names)
    told = f": {rows:,} row{'s' * (rows != 1)}, {columns} column{'s' * (columns != 1)}"
    assert data["summary"] == file + (told if language == "en" else f"：{rows:,} 行、{columns} 列")


def test_a_table_of_more_than_200_kb_is_cut_in_the_text_but_not_in_the_file(place: Place) -> None:
    path = place.write("data", json.dumps([{"a": "字" * 100}] * 1_000))
    data = place.script("json-table", path).data
    *rows, last = data["text"].splitlines()
    assert (len(data["text"].encode()) < 210_000, last) == (True, f"and {1_002 - len(rows)} more in table.md")
    assert len(place.written("table.md").splitlines()) == 1_002


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(
    ("message", "preview"),
    [
        ("show crew.json as a table sorted by age", ["Bo | 7", "Eve | 30", "Ann | 41"]),
        ("show crew.json as a table sorted by age descending", ["Ann | 41", "Eve | 30", "Bo | 7"]),
        ("show crew.json as a table, only for Eve", ["Eve | 30"]),
        ("把 crew.json 转成表格，只看 age 大于 10 的", ["Ann | 41", "Eve | 30"]),
    ],
)
def test_rows_are_filtered_and_sorted_as_a_message_says(place: Place, message: str, preview: list[str]) -> None:
    place.write(
        "crew.json", json.dumps([{"name": "Ann", "age": 41}, {"name": "Eve", "age": 30}, {"name": "Bo", "age": 7}])
    )
    assert [line.strip("| ") for line in place.data(message)["preview"].split("\n")[2:]] == preview


def test_an_order_of_a_column_that_is_not_there_is_an_error(place: Place) -> None:
    place.write("crew.json", '[{"name": "Ann"}, {"name": "Eve"}]')
    assert "there is no column 'salary'" in place.ask("json table of crew.json sorted by salary").summary
