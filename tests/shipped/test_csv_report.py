"""csv-report: the figures match the generated table."""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from fractions import Fraction
from statistics import fmean, median
from typing import Any

import pytest

from shipped.place import ESCAPES, Place

pytestmark = pytest.mark.sample(2)

WORDS = ("Bonn", "Kiel", "北京", "a,b", 'say "so"', "two\nlines", "x|y", "")


def table(seed: int, delimiter: str) -> tuple[str, list[list[str]]]:
    """A made-up table of two columns of numbers and two of words."""
    dice = random.Random(seed)
    rows = [
        [str(dice.randint(-99, 99)), dice.choice(("", f"{dice.randint(0, 10**6) / 100:.2f}")), dice.choice(WORDS), "k"]
        for _ in range(dice.randint(1, 200))
    ]
    held = io.StringIO(newline="")
    writer = csv.writer(held, delimiter=delimiter)
    writer.writerows([["whole", "price", "城市", "same"], *rows])
    return held.getvalue(), rows


@pytest.mark.parametrize("delimiter", list(",;\t|"))
@pytest.mark.parametrize("seed", range(3))
def test_every_figure_is_that_of_its_column(place: Place, delimiter: str, seed: int) -> None:
    text, rows = table(seed, delimiter)
    place.write("t.csv", text)
    data = place.data("/csv-report @t.csv")
    assert (data["rows"], list(data["columns"])) == (len(rows), ["whole", "price", "城市", "same"])
    for at, name in enumerate(("whole", "price")):
        held = [Fraction(row[at]) for row in rows if row[at]]
        assert_figures(data["columns"][name], held, len(rows))
    words = Counter(row[2] for row in rows if row[2])
    town = data["columns"]["城市"]
    assert (town["distinct"], town["missing"]) == (len(words), len(rows) - words.total())
    shown = {" ".join(word.split()): number for word, number in words.items()}
    assert all(shown[top["value"]] == top["count"] for top in town["top"])
    assert [top["count"] for top in town["top"]] == sorted(words.values(), reverse=True)[:5]


def assert_figures(told: Any, held: list[Fraction], rows: int) -> None:
    assert told["missing"] == rows - len(held)
    if held:
        assert (told["type"], told["min"], told["max"]) == ("number", float(min(held)), float(max(held)))
        assert told["sum"] == pytest.approx(float(sum(held)))
        assert told["mean"] == pytest.approx(float(sum(held) / len(held)))


@pytest.mark.parametrize(
    ("cells", "total"),
    [
        (["1,234", "1,234,567.5"], 1_235_801.5),
        (["1,5", "2"], 3.5),
        (["1.234,56", "7"], 1_241.56),
        (["$1,234", "$2"], 1_236),
        (["$1", "€2"], None),
        (["50%", "7.5%"], 57.5),
        (["1,5", "2.5"], None),
        (["1_000"], None),
        (["nan"], None),
        (["1e308", "1e308"], None),
        (["1e3", " 2 ", "+3", "-.5"], 1_004.5),
        (["٣"], 3.0),
    ],
)
def test_a_column_of_plain_numbers_is_summed_and_any_other_is_text(
    place: Place, cells: list[str], total: float | None
) -> None:
    path = place.write("t.csv", "n;x\n" + "".join(f'"{cell}";1\n' for cell in cells))
    column = place.script("csv-report", path).data["columns"]["n"]
    assert (column["type"], column.get("sum")) == (("text", None) if total is None else ("number", total))


def test_columns_with_the_same_name_or_without_a_name_get_distinct_names(place: Place) -> None:
    path = place.write("t.csv", "a,a,,\n1,2,3,4\n")
    assert list(place.script("csv-report", path).data["columns"]) == ["a", "a (2)", "column 3", "column 4"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "the file is empty"), (b"\xef\xbb\xbf", "the file is empty"), (b"a," * 600, "601 columns, more than 500")],
)
def test_an_empty_or_too_wide_csv_file_is_reported_in_one_line(place: Place, content: bytes, said: str) -> None:
    assert said in place.script("csv-report", place.write("t.csv", content)).complaint


def test_a_file_that_is_not_there_is_named(place: Place) -> None:
    assert "'nowhere.csv' cannot be read" in place.script("csv-report", "nowhere.csv").complaint


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1", b"a\n" + b"x" * 300_000, b"\xff\xfe,b\n1,2", b'a\n"never closed\n', b"a\0b,c\n1,2", b"a\rb\r"],
)
def test_a_malformed_csv_file_still_gets_a_report_with_columns(place: Place, content: bytes) -> None:
    assert place.script("csv-report", place.write("t.csv", content)).data["columns"]


def test_nothing_that_steers_a_terminal_or_breaks_the_page_is_left(place: Place) -> None:
    data = place.script("csv-report", place.write("t.csv", f"a|b{ESCAPES},c\nx|{ESCAPES}y,\n")).data
    assert list(data["columns"]) == ["a|bred ", "c"]
    assert [line.count(" | ") for line in place.written("report.md").splitlines()] == [8, 0, 8, 8]


def test_its_own_eval_is_right(place: Place) -> None:
    place.write("sales.csv", "city,amount,note\nBonn,3,\nKiel,5.5,late\nBonn,4,ok\nUlm,8,ok\n")
    columns = place.data("/csv-report @sales.csv")["columns"]
    assert (columns["amount"]["sum"], columns["amount"]["mean"], columns["note"]["missing"]) == (20.5, 5.125, 1)
    assert columns["city"]["top"][0] == {"value": "Bonn", "count": 2}


NUMBERS = {  # how a number is written in a file → the same for Python
    "plain": lambda cell: cell,
    "comma": lambda cell: cell.replace(".", "").replace(",", "."),
    "thousands": lambda cell: cell.replace(",", ""),
    "unit": lambda cell: cell.strip("$€￥%元 ").replace(",", ""),
}
EVERYDAY = (  # language, file, encoding, delimiter, form of the numbers, column of numbers, text
    ("en", "sales.csv", "utf-8", ",", "plain", "amount", "city,amount\nBonn,3\nKiel,5.5\nBonn,4\n"),
    ("en", "data/returns.csv", "utf-8-sig", ",", "plain", "quantity", "id,quantity,reason\n1,2,\n2,3,late\n3,2,\n"),
    ("en", "tabs.tsv", "utf-8", "\t", "plain", "n", "n\tname\n1\ta b\n-2\tc\n"),
    ("en", "bars.txt", "utf-8", "|", "plain", "n", "name|n\na|1e3\nb|.5\n"),
    ("en", "german.csv", "utf-8", ";", "comma", "Preis", "Ort;Preis\nKöln;1.234,56\nBonn;7\nUlm;0,5\n"),
    ("en", "old german.csv", "cp1252", ";", "comma", "Preis", "Größe;Preis\nfür alle;1,50\nfür dich;2,25\n"),
    ("en", "thousands.csv", "utf-8", ",", "thousands", "people", 'town,people\nA,"1,200"\nB,"12,345,678"\n'),
    ("en", "dollars.csv", "utf-8", ",", "unit", "price", 'item,price\na,"$1,200.50"\nb,$3\n'),
    ("en", "shares.csv", "utf-8", ",", "unit", "share", "who,share\na,12%\nb,7.5%\n"),
    ("en", "excel.csv", "utf-16", "\t", "plain", "n", "name\tn\nx\t10\ny\t20\n"),
    ("zh", "订单.csv", "utf-8", ",", "plain", "金额", "订单号,金额,备注\nD1,100,加急\nD2,250.5,\n"),
    ("zh", "数据/旧 销售.csv", "gb18030", ",", "plain", "金额", "城市,金额\n北京,12.5\n上海,30\n北京,7\n"),
    ("zh", "女.csv", "gb18030", ",", "plain", "年龄", "姓名,性别,年龄\n王芳,女,30\n李强,男,41\n"),
    ("zh", "签名.csv", "utf-8-sig", ",", "plain", "数量", "商品,数量\n杯子,3\n蜡烛,\n篮子,9\n"),
    ("zh", "宽字符.csv", "utf-16", ",", "plain", "数量", "商品,数量\n杯子,3\n蜡烛,4\n"),
    ("zh", "人民币.csv", "utf-8", ",", "unit", "价格", '商品,价格\n杯子,￥12.80\n蜡烛,"￥1,003"\n'),
    ("zh", "元.csv", "gb18030", ",", "unit", "价格", "商品,价格\n杯子,12元\n蜡烛,8.5元\n"),
    ("zh", "分号.csv", "utf-8", ";", "comma", "价格", "商品;价格\n杯子;12,5\n蜡烛;1.000\n"),
    ("zh", "一行.csv", "utf-8", ",", "plain", "数", "名,数\n甲,1\n"),
    ("zh", "引号.csv", "utf-8", ",", "plain", "数", '名,数\n"甲,乙",1\n"丙\n丁",2\n'),
)


@pytest.mark.parametrize(
    ("language", "file", "encoding", "delimiter", "form", "column", "text"), EVERYDAY, ids=lambda value: str(value)[:16]
)
def test_an_everyday_table_has_the_figures_of_the_csv_module(
    place: Place, language: str, file: str, encoding: str, delimiter: str, form: str, column: str, text: str
) -> None:
    place.write(file, text.encode(encoding))
    data = place.answer("csv-report", file, language=language)
    rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    cells = [NUMBERS[form](row[column]) for row in rows]
    numbers = [float(cell) for cell in cells if cell]
    told = data["columns"][column]
    assert (data["rows"], list(data["columns"])) == (len(rows), list(rows[0]))
    assert {key: held["missing"] for key, held in data["columns"].items()} == {
        key: sum(not row[key] for row in rows) for key in rows[0]
    }
    figures = [sum(numbers), fmean(numbers), median(numbers), min(numbers), max(numbers)]
    assert [told[key] for key in ("sum", "mean", "median", "min", "max")] == pytest.approx(figures)
    assert (data["encoding"], data["delimiter"]) == (encoding.removesuffix("-sig"), delimiter)
    written = f"{sum(numbers):,.2f}".rstrip("0").rstrip(".")
    assert data["summary"].startswith(file) and column in data["summary"] and written in data["summary"]
    assert len(data["text"].splitlines()) == len(rows[0]) + 2 and '{"' not in data["text"]


@pytest.mark.parametrize(
    ("language", "text", "summary"),
    [
        ("en", "a,b\n1,x\n", "t.csv: 1 row, 2 columns; a: sum 1, mean 1"),
        ("en", "id,b\n1,2000.5\n2,\n", "t.csv: 2 rows, 2 columns; b: sum 2,000.5, mean 2,000.5; missing values: b 1"),
        ("en", "b\n$5\n$6\n", "t.csv: 2 rows, 1 column; b: sum $11, mean $5.5"),
        ("zh", "名,数\n甲,1\n乙,2\n", "t.csv：2 行、2 列；数：合计 3，平均 1.5"),
    ],
)
def test_the_summary_is_a_sentence_of_the_persons_language(
    place: Place, language: str, text: str, summary: str
) -> None:
    assert place.answer("csv-report", place.write("t.csv", text), language=language)["summary"] == summary


def test_columns_that_are_wanted_are_told_alone(place: Place) -> None:
    path = place.write("t.csv", "City,amount,note\nBonn,3,x\n")
    assert list(place.answer("csv-report", "--columns", "note，city", path)["columns"]) == ["note", "City"]
    complaint = place.script("csv-report", "--columns", "nmae", path).complaint
    assert complaint == "there is no column 'nmae': there are 'City', 'amount', 'note'"


def test_a_workbook_is_not_a_csv_file(place: Place) -> None:
    assert "save it as CSV" in place.script("csv-report", place.write("t.xlsx", b"PK\x03\x04\0\0")).complaint


def test_decimal_commas_in_quotes_are_numbers(place: Place) -> None:
    place.write("sales.csv", 'name,amount\nAnn,"1.200,50"\nBob,"300,00"\nCyd,"99,95"\n')
    assert place.answer("csv-report", "sales.csv")["columns"]["amount"]["sum"] == 1600.45


# What a message limits the report to

SALES = "region,port,amount\nnorth,Oslo,10\nsouth,Kiel,5.5\nnorth,Kiel,2\nsouth,Oslo,100\n"


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("amount by port in sales.csv", "sales.csv by port: Kiel: 2 rows, amount sum 7.5, mean 3.75; Oslo: 2 rows, amount sum 110, mean 55"),
        ("sum of amount by region where port is oslo in sales.csv", "sales.csv, port = Oslo by region: north: 1 row, amount sum 10; south: 1 row, amount sum 100"),
        ("top 1 port by amount in sales.csv", "sales.csv by port: Oslo: 2 rows, amount sum 110, mean 55; and 1 more"),
        ("summarise sales.csv, only for north", "sales.csv, region = north: 2 rows, 3 columns; amount: sum 12, mean 6"),
        ("the 2 largest amounts in sales.csv", "sales.csv: 4 rows, 3 columns; amount: max 100; first by amount: 100, 10"),
        ("按 port 汇总 sales.csv 的 amount", "sales.csv 按port：Kiel：2 行，amount 合计 7.5，平均 3.75；Oslo：2 行，amount 合计 110，平均 55"),
    ],
)  # fmt: skip
def test_the_words_of_a_message_group_filter_and_sort(place: Place, message: str, expected: str) -> None:
    place.write("sales.csv", SALES)
    assert place.ask(message).summary == expected


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("amount by country in sales.csv", "there is no column 'country'"),
        ("sum of amount where region is west in sales.csv", "there is no 'west' in the column 'region': there are 'north', 'south'"),
        ("汇总 sales.csv，只看西区", "表中没有 '西区'"),
    ],
)  # fmt: skip
def test_a_column_or_value_that_is_not_there_is_said(place: Place, message: str, told: str) -> None:
    place.write("sales.csv", SALES)
    report = place.ask(message)
    assert (report.state, told in report.summary) == ("error", True), report.summary


VISITS = (
    "id,doctor,seen,minutes,fee,age,march\n1,Lee,2026-06-02,15,10,40,1\n2,Lee,2026-06-30 10:00,,30,50,2\n"
    "3,Okafor,2026-07-01,45,20,60,3\n4,Lee,2026-08-09,30,70,70,4\n"
)


@pytest.mark.requirement("SEN-2", "X-10")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("median fee in visits.csv", "visits.csv: 4 rows, 7 columns; fee: median 25"),
        ("minimum and maximum age in visits.csv", "visits.csv: 4 rows, 7 columns; age: min 40, max 70"),
        ("max fee in June in visits.csv", "visits.csv, seen 2026-06-01 to 2026-06-30: 2 rows, 7 columns; fee: max 30"),
        ("average fee of Lee in visits.csv since July", "visits.csv, doctor = Lee, seen 2026-07-01 to …: 1 row, 7 columns; fee: mean 70"),
        ("total fee per doctor in visits.csv until 2026-07-31", "visits.csv, seen … to 2026-07-31 by doctor: Lee: 2 rows, fee sum 40; Okafor: 1 row, fee sum 20"),
        ("average fee in visits.csv in 2019", "visits.csv, seen 2019-01-01 to 2019-12-31 (it holds 2026-06-02 to 2026-08-09): 0 rows, 7 columns"),
        ("sum of March in visits.csv", "visits.csv: 4 rows, 7 columns; march: sum 10"),
        ("is any fee missing in visits.csv?", "visits.csv: 4 rows, 7 columns; fee: sum 130, mean 32.5; no missing values"),
        ("visits.csv 里 fee 最大是多少", "visits.csv：4 行、7 列；fee：最大 70"),
        ("visits.csv 7月的 fee 平均值", "visits.csv（seen 2026-07-01 至 2026-07-31）：1 行、7 列；fee：平均 20"),
    ],
)  # fmt: skip
def test_the_summary_tells_the_figure_the_column_and_the_days_that_are_asked_for(
    place: Place, message: str, expected: str
) -> None:
    place.write("visits.csv", VISITS)
    assert place.ask(message).summary == expected


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize("message", ["sum of column salary in visits.csv", "average of the field salary in visits.csv"])
def test_a_column_called_so_that_the_file_lacks_is_said(place: Place, message: str) -> None:
    place.write("visits.csv", VISITS)
    report = place.ask(message)
    assert (report.state, "there is no column 'salary'" in report.summary) == ("error", True), report.summary


@pytest.mark.parametrize(
    ("cells", "rows"),
    [
        (["2026-06-30", "2026-07-01"], 1),
        (["30.6.2026", "1.7.2026"], 1),
        (["06/30/2026", "07/01/2026"], 1),
        (["30/06/2026", "01/07/2026", ""], 1),
        (["2026年6月", "2026年7月"], 1),
        (["2026/6/30 9:00", "2026/7/1 9:00"], 1),
        (["06/05/2026", "05/06/2026"], None),  # 6 May or 5 June
        (["2026-06-30", "soon"], None),
        (["2026-06-31"], None),
    ],
)
def test_a_column_is_of_dates_if_each_cell_is_one(place: Place, cells: list[str], rows: int | None) -> None:
    path = place.write("t.csv", "day,n\n" + "".join(f"{cell},1\n" for cell in cells))
    done = place.script("csv-report", "--since", "2026-06-01", "--until", "2026-06-30", path)
    if rows is None:
        assert done.complaint.startswith("no column holds dates")
    else:
        assert done.data["rows"] == rows


def test_only_a_part_after_a_report_narrows_it(place: Place) -> None:
    place.write("sales.csv", SALES)
    talk = place.talk()
    talk.say("summarise sales.csv")
    assert talk.say("only for south").report.summary.startswith("sales.csv, region = south: 2 rows")
