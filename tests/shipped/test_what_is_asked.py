"""The sentence of a shipped skill tells the fact that a message asks for, or says that the skill cannot tell it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shipped.place import Place
from skill_repositories import git

pytestmark = pytest.mark.requirement("SEN-2", "X-10")

NOTES = "# Notes\n\nThe crew met. The crew ate.\nA crewman sang.\n\nEnd\n"
LOG = (
    "2026-09-01 10:00:00 ERROR first thing broke\n2026-09-01 10:05:00 INFO timeout of 3\n"
    "2026-09-01 10:06:00 ERROR second thing broke\n2026-09-01 10:07:00 INFO timeout again\n"
)


def answer_of(place: Place, message: str) -> str:
    """The summary of the reply, and after a question which skill is meant, of the skill that is about the file."""
    talk = place.talk()
    report = talk.say(message).report
    offered = report.data.get("options", ())
    owner = "word-count" if "notes.md" in message else "log-summary" if "app.log" in message else "git-summary"
    at = list(offered).index(owner) + 1 if owner in offered else 0
    meant = "" if not at else "y" if len(offered) == 1 else str(at)
    return (talk.say(meant).report if meant else report).summary


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("how often does the word crew appear in notes.md", "notes.md: 11 words, 58 characters, 6 lines; “crew” comes 2 times"),
        ("how many times is 'crew' used in notes.md", "; “crew” comes 2 times"),
        ("notes.md 里 crew 这个词一共出现了几次", "；“crew”出现 2 次"),
        ("how many paragraphs has notes.md", "; 3 paragraphs"),
        ("how many characters without spaces are in notes.md", "; 44 characters without spaces"),
        ("how many words has notes.md", "notes.md: 11 words, 58 characters, 6 lines; the most frequent is “crew”, 2 times"),
        ("what is the last error in app.log", "; last error: 2026-09-01 10:06:00 ERROR second thing broke"),
        ("app.log 最早的错误是什么", "；最早的错误：2026-09-01 10:00:00 ERROR first thing broke"),
        ("how many lines of app.log contain timeout", "; 2 lines with 'timeout'"),
        ("first and last timestamp of app.log", "; from 2026-09-01 10:00:00 to 2026-09-01 10:07:00"),
        ("errors after 10:02 in app.log", "this skill cannot limit or order its answer by 'after 10:02'"),
        ("app.log 10点以后的错误", "这个技能不能按 '10点以后' 限定或排序"),
    ],
)  # fmt: skip
def test_the_fact_that_is_asked_for_is_told(place: Place, message: str, told: str) -> None:
    place.write("notes.md", NOTES)
    place.write("app.log", LOG)
    assert told in answer_of(place, message)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("who made the last commit?", "; last: 2026-03-02T00:00:00Z by Ben: second"),
        ("what was the first commit here", "; first: 2026-03-01T00:00:00Z by Ann: first"),
        ("最近一次提交是谁做的", "；最后一次：2026-03-02T00:00:00Z，Ben：second"),
    ],
)
def test_the_commit_that_is_asked_for_is_told(place: Place, message: str, told: str) -> None:
    person = "<a@b.invalid>"
    stream = ""
    for who, day, why in (("Ann", 1, "first"), ("Ben", 2, "second")):
        when = int(datetime(2026, 3, day, tzinfo=UTC).timestamp())
        stream += f"commit refs/heads/main\ncommitter {who} {person} {when} +0000\ndata {len(why)}\n{why}\n"
    git(place.root, "init", "--quiet", "--initial-branch=main")
    git(place.root, "fast-import", "--quiet", stdin=stream.encode())
    assert told in answer_of(place, message)


SALES = (
    "date,shop,clerk,quantity,price\n2026-06-03,Harbour,Anna,5,2.50\n2026-06-20,Old Town,Boris,9,3.20\n"
    "2026-07-02,Station,Anna,7,1.10\n2026-07-09,Harbour,Ines,12,4.00\n2026-08-01,Old Town,Ines,2,2.50\n"
)


def answers_of(place: Place, messages: str) -> list[str]:
    """The summaries of the replies to messages of one session, with `|` between; an offered csv-report is accepted."""
    talk, summaries = place.talk(), list[str]()
    for message in messages.split(" | "):
        report = talk.say(message).report
        options = list(report.data.get("options", ()))
        if "csv-report" in options:
            report = talk.say("y" if len(options) == 1 else str(options.index("csv-report") + 1)).report
        summaries.append(report.summary)
    return summaries


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("total quantity in sales.csv except Old Town", "sales.csv, shop != Old Town: 3 rows, 5 columns; quantity: sum 24"),
        ("total quantity in sales.csv except Ines", "sales.csv, clerk != Ines: 3 rows, 5 columns; quantity: sum 21"),
        ("how many orders has Anna in sales.csv", "sales.csv, clerk = Anna: 2 rows"),
        ("compare Harbour and Station in sales.csv by quantity", "Harbour: 2 rows, quantity sum 17, mean 8.5; Station: 1 row, quantity sum 7"),
        ("total quantity per clerk in sales.csv for Harbour", "shop = Harbour by clerk: Anna: 1 row, quantity sum 5; Ines: 1 row, quantity sum 12"),
        ("how many rows of sales.csv have quantity between 5 and 9", "sales.csv, quantity >= 5, quantity <= 9: 3 rows"),
        ("which shop sold the most in sales.csv", "sales.csv by shop: Harbour: 2 rows, quantity sum 17"),
        ("除了 Ines，sales.csv 的 quantity 合计是多少", "clerk != Ines"),
        ("对比 sales.csv 里的 Harbour 和 Station", "Harbour：2 行，quantity 合计 17"),
    ],
)  # fmt: skip
def test_values_of_the_table_that_a_question_names_limit_its_rows(place: Place, message: str, told: str) -> None:
    place.write("sales.csv", SALES)
    assert told in answers_of(place, message)[-1]


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ("highest quantity in June in sales.csv | and in July?", "sales.csv, date 2026-07-01 to 2026-07-31: 2 rows, 5 columns; quantity: max 12"),
        ("highest quantity in June in sales.csv | what about August?", "quantity: max 2"),
        ("highest quantity in sales.csv | and the lowest?", "sales.csv: 5 rows, 5 columns; quantity: min 2"),
        ("total quantity in sales.csv for Anna | now only for Boris", "sales.csv, clerk = Boris: 1 row, 5 columns; quantity: sum 9"),
        ("total quantity in sales.csv | and Ines?", "sales.csv, clerk = Ines: 2 rows, 5 columns; quantity: sum 14"),
        ("sum of quantity per shop in sales.csv | per clerk", "sales.csv by clerk: Anna: 2 rows, quantity sum 12; Boris: 1 row, quantity sum 9; Ines: 2 rows, quantity sum 14"),
        ("sum of quantity per clerk in sales.csv | only in July", "by clerk: Anna: 1 row, quantity sum 7; Ines: 1 row, quantity sum 12"),
        ("how many errors are in app.log | 2026-09-01?", "2 errors"),
        ("total quantity in sales.csv | and Ines? | run it again", "sales.csv, clerk = Ines: 2 rows, 5 columns; quantity: sum 14"),
        ("highest quantity in June in sales.csv | and in July? | 再来一次", "2026-07-01"),
    ],
)  # fmt: skip
def test_a_message_that_goes_on_keeps_what_it_does_not_replace(place: Place, messages: str, told: str) -> None:
    """SEN-7, STK-3"""
    place.write("sales.csv", SALES)
    place.write("app.log", LOG)
    assert told in answers_of(place, messages)[-1]


LOANS = (
    "branch,loan,amount,status\nNorth,1,1000,open\nSouth,2,500,closed\nNorth,3,1200,open\nEast,4,300,open\n"
    "North,5,50,closed\nSouth,6,700,open\n"
)
SENSORS = (
    "time,sensor,room,humidity\n2026-11-01,A1,kitchen,45\n2026-11-01,B2,cellar,71\n2026-11-02,A1,kitchen,48\n"
    "2026-11-02,B2,cellar,69\n2026-11-03,C3,attic,80\n"
)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("which branch has the most loans in loans.csv", "loans.csv by branch: North: 3 rows"),
        ("which branch has the most open loans in loans.csv", "status = open by branch: North: 2 rows"),
        ("how many loans are open in loans.csv", "loans.csv, status = open: 4 rows"),
        ("highest amount among closed loans in loans.csv", "status = closed: 2 rows, 4 columns; amount: max 500"),
        ("which status is most common in loans.csv", "loans.csv by status: open: 4 rows"),
        ("哪个 branch 的 amount 最高？loans.csv", "amount 最大 1,200：North"),
        ("which sensor has the highest humidity in sensors.csv", "sensors.csv by sensor: highest humidity 80: C3; B2: 2 rows, humidity sum 140"),
        ("which sensor has the lowest humidity in sensors.csv", "lowest humidity 45: A1; C3"),
        ("which room has the highest average humidity in sensors.csv", "sensors.csv by room: attic: 1 row, humidity mean 80; cellar: 2 rows"),
        ("which day had the highest humidity in sensors.csv", "sensors.csv by day: highest humidity 80: 2026-11-03"),
        ("which month has the most rows in sensors.csv", "sensors.csv by month: 2026-11: 5 rows"),
    ],
)  # fmt: skip
def test_a_question_about_the_groups_of_a_table_is_answered_without_a_choice(
    place: Place, message: str, expected: str
) -> None:
    """The names of columns say what is meant, and not which skill."""
    place.write("loans.csv", LOANS)
    place.write("sensors.csv", SENSORS)
    assert expected in place.talk().say(message).report.summary


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ("count the loans per branch in loans.csv | and only the open ones", "loans.csv, status = open by branch: "),
        ("count the loans per branch in loans.csv | and without South", "branch != South by branch: East: 1 row"),
        ("total amount in loans.csv | only North | no, South", "branch = South: 2 rows, 4 columns; amount: sum 1,200"),
        ("total amount in loans.csv | only North | no, I meant East", "branch = East: 1 row"),
        ("total amount in loans.csv | 不含 North", "（branch != North）：3 行"),
        ("total amount in loans.csv | only those beyond | only North", "branch = North: 3 rows"),
        ("total amount in loans.csv | what did you do?", "The last run was csv-report"),
        ("list the files here | only the csv ones", "the project: 2 .csv files"),
        ("list the files here | 只看 csv 的", "个 .csv 文件"),
        ("total amount per branch in loans.csv | sorted by branch", "loans.csv by branch: East: 1 row, amount sum 300; North"),
        ("total amount per branch in loans.csv | sort it", "loans.csv by branch: North: 3 rows, amount sum 2,250; South"),
        ("total amount per branch in loans.csv | top 2", "North: 3 rows, amount sum 2,250; South: 2 rows, amount sum 1,200; and 1 more"),
        ("total amount per branch in loans.csv | highest first", "loans.csv by branch: North: 3 rows, amount sum 2,250; South"),
        ("total amount per branch in loans.csv | 从大到小", "North：3 行，amount 合计 2,250；South"),
        ("total amount per branch in loans.csv | 不要 North", "branch != North） 按branch：East：1 行"),
        ("which clerk sold most in loans.csv", "there is no column 'clerk'"),
    ],
)  # fmt: skip
def test_a_short_message_after_a_run_changes_its_limits(place: Place, messages: str, expected: str) -> None:
    """SEN-7, STK-3"""
    place.write("loans.csv", LOANS)
    place.write("sensors.csv", SENSORS)
    assert expected in answers_of(place, messages)[-1]


@pytest.mark.parametrize(
    "words", ["no, nothing else", "without me", "without running it again", "no, don't", "sorry, my mistake", "去掉"]
)
def test_a_refusal_after_a_run_on_a_table_does_not_run_it_again(place: Place, words: str) -> None:
    """Only a value of the table is a limit: `no, South`, `without South`."""
    place.write("loans.csv", LOANS)
    talk = place.talk()
    talk.say("total amount per branch in loans.csv")
    assert talk.say(words).report.agent == "kernel"


def test_open_tasks_of_a_markdown_file_that_is_named_are_todos(place: Place) -> None:
    place.write("plan.md", "# Plan\n\n- [ ] buy milk\n- [x] call Bob\n1. [ ] fix the roof\n")
    report = place.talk().say("list the todos in plan.md").report
    assert report.summary == "plan.md: 2 marks: 2 [ ]"
    assert "3: [ ] buy milk" in report.data["text"]


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ("summarise app.log | how many errors are there?", "app.log: 4 lines, 2 errors"),
        ("summarise app.log | 有多少个错误？", "app.log：4 行，2 个错误"),
        ("count the words of notes.md | how many lines does it have?", "notes.md: 11 words, 58 characters, 6 lines"),
        ("total quantity in sales.csv | which shop has the highest quantity?", "sales.csv by shop: "),
        ("summarise app.log | what is the capital of France?", "No skill fits"),
        ("count the words of notes.md | is it any good?", "No skill fits"),
        ("count the words of notes.md | what did we do?", "The last run was word-count"),
    ],
)
def test_a_question_after_a_run_is_answered_by_it_only_if_it_surely_is_about_the_same(
    place: Place, messages: str, told: str
) -> None:
    """SEN-7, STK-3"""
    for name, text in {"app.log": LOG, "notes.md": NOTES, "sales.csv": SALES}.items():
        place.write(name, text)
    assert told in answers_of(place, messages)[-1]


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ("summarise missing.log | it's app.log", "app.log: 4 lines, 2 errors"),
        ("count the words of note.md | yes", "notes.md: 11 words"),
        ("count the words of nothere.md | no, the file is called notes.md", "notes.md: 11 words"),
        ("统计 nothere.md 的字数 | 我说的是 notes.md", "notes.md：11 个单词"),
        ("count the words of @nothere.md | use notes.md instead", "notes.md: 11 words"),
        ("count the words of notes.md | summarise missing.log | app.log", "app.log: 4 lines, 2 errors"),
        ("count the words of nothere.md | summarise app.log", "app.log: 4 lines, 2 errors"),
        ("count the words of nothere.md | /../x", "No skill fits"),
        ("count the words of nothere.md | thanks | it's notes.md", "No skill fits"),
    ],
)
def test_the_next_message_may_name_the_file_that_was_meant(place: Place, messages: str, told: str) -> None:
    """X-7, SEN-7"""
    place.write("notes.md", NOTES)
    place.write("app.log", LOG)
    assert told in answers_of(place, messages)[-1]


@pytest.mark.parametrize("text", ["hello", "Hi there!", "good morning, how are you?", "你好", "在吗？"])
def test_hello_is_answered_with_what_can_be_done(place: Place, text: str) -> None:
    report = place.ask(text)
    assert (report.state, len(report.data["capabilities"])) == ("success", 3)


def test_another_table_without_the_columns_is_summarised_whole(place: Place) -> None:
    place.write("sales.csv", SALES)
    place.write("crew.csv", "name,age\nAda,40\nBo,30\n")
    summary = answers_of(place, "highest quantity in sales.csv | what about crew.csv")[-1]
    assert summary == "crew.csv: 2 rows, 2 columns; age: sum 70, mean 35"


@pytest.mark.parametrize(
    "message",
    [
        "plot the quantity per month from sales.csv",
        "show the last 5 lines of app.log",
        "first 3 lines of app.log",
        "sort sales.csv by price and save it to sorted.csv",
        "convert sales.csv to json",
        "email the summary of sales.csv to Anna",
        "fix the broken links in notes.md",
        "画一张 sales.csv 的柱状图",
        "显示 app.log 的最后5行",
        "把 sales.csv 按 price 排序后保存成新文件",
        "sum of quantity in sales.csv | and plot it",
    ],
)
def test_what_no_command_does_is_not_answered_by_one_that_does_something_else(place: Place, message: str) -> None:
    """X-33"""
    for name, text in (("sales.csv", SALES), ("app.log", LOG), ("notes.md", NOTES)):
        place.write(name, text)
    talk = place.talk()
    report = [talk.say(each).report for each in message.split(" | ")][-1]
    assert (report.state, report.data["reason"]) == ("pending", "no_model")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("summarise plot.csv", "plot.csv: 5 rows"),
        ("show the first 2 rows of sales.csv", "sales.csv: 5 rows"),
        ("do not delete anything, only summarise sales.csv", "sales.csv: 5 rows"),
        ("errors between 9 and 10 in app.log", "this skill cannot limit or order its answer by 'between 9 and 10'"),
        ("how many 404 in access.log", "; 1 line with '404'"),
        ("app.log 里有几行提到 timeout", "；含“timeout”的有 2 行"),
        ("max temp in readings.tsv", "temp: max 7.5"),
    ],
)
def test_what_a_command_does_is_still_done(place: Place, message: str, told: str) -> None:
    for name, text in (("sales.csv", SALES), ("plot.csv", SALES), ("app.log", LOG)):
        place.write(name, text)
    place.write(
        "access.log",
        '10.0.0.1 - - [30/Nov/2026:08:00:00 +0000] "GET /a" 404 12\n10.0.0.1 - - [30/Nov/2026:08:00:01 +0000] "GET /b" 200 14045\n',
    )
    (place.root / "readings.tsv").write_text("sensor\ttemp\nS1\t7.5\nS2\t3\n", "utf-16")
    talk = place.talk()
    report = talk.say(message).report
    if options := list(report.data.get("options", ())):
        owner = "log-summary" if ".log" in message else "csv-report"
        report = talk.say("y" if len(options) == 1 else str(options.index(owner) + 1)).report
    assert told in report.summary


def test_a_name_alone_asks_for_the_commits_of_that_person_next(place: Place) -> None:
    """SEN-7"""
    git(place.root, "init", "--quiet", "--initial-branch=main")
    for who in ("Ann Lund", "Ben Novak"):
        person = ["-c", f"user.name={who}", "-c", "user.email=a@b.invalid"]
        git(place.root, *person, "commit", "--quiet", "--allow-empty", "-m", "x")
    talk = place.talk()
    assert "most active: Ann Lund (1 commit)" in talk.say("how many commits did Ann Lund make").report.summary
    assert "most active: Ben Novak (1 commit)" in talk.say("and Ben Novak?").report.summary


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ('count the words in "the quick brown fox"', "4 words, 19 characters, 1 line"),
        ("how many words: 'commit the last branch'", "4 words, 22 characters, 1 line"),
        ("统计“合并两个分支”的字数", "6 个汉字、6 个字符、1 行"),
    ],
)
def test_what_is_quoted_is_worked_on_and_does_not_choose_the_skill(place: Place, message: str, told: str) -> None:
    reply = place.talk().say(message)
    assert (reply.report.state, told in reply.report.summary) == ("success", True)


@pytest.mark.parametrize("message", ['what does "git rebase" do', 'translate "hello world" into French'])
def test_a_question_about_what_is_quoted_does_not_work_on_it(place: Place, message: str) -> None:
    assert place.talk().say(message).report.state == "pending"
