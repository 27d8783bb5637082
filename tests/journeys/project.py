"""Makes the project of a small radio station in a folder: code in Python and Go, pages, tables, logs, sounds and pictures, a vendored
library, ignored files, and a git history of 25 commits by three people.

The same bytes each time, but for what a person names by the calendar: the logs of today and yesterday, and the seven latest commits.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import random
import struct
import subprocess
import wave
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tables import table

IGNORED = ("node_modules/", "build/", ".claude/", "scratch.tmp")
UNTRACKED = (*IGNORED, "logs/")
SCHEDULE = "studio/scheduler.py"
PEOPLE = {"Ruth": "Ruth Adler", "Pablo": "Pablo Ortiz", "林晓": "林晓"}
WORDS = "signal tower studio record speaker antenna weather evening chorus cable ferry mayor".split()
WEIGHTS = (40, 29, 20, 13, 8, 4, 3, 2, 2, 1, 1, 1)
SENTENCES = "开播前请检查话筒和耳机。 每小时整点播报天气。 嘉宾到达后先签到再进录音室。 停播时立即通知值班主任。 录音文件保存三个月。".split()

MARKS = {  # in the order of their functions; None is a function without a mark
    "studio/playlist.py": ("TODO: check levels before the jingle", None, "FIXME: crossfade clips a short track", "TODO: read levels of old tapes"),
    SCHEDULE: ("FIXME: two shows at midnight", "TODO(ruth): keep levels with each show", None, "FIXME: summer time skips news", "HACK: wait for an even minute", None),
    "studio/jingles/fade.py": ("TODO: levels of both channels", "XXX magic curve", "TODO: levels jump after silence"),
    "studio/音频/转码.py": ("待办：支持无损格式", "TODO: 处理单声道", "待办：写入曲目标签"),
    "streamer/main.go": ("TODO: reload the station list", "FIXME: the port is fixed", None),
    "streamer/buffer.go": ("TODO: drop the oldest frame first", None, "HACK: double the buffer on Mondays", None),
    "streamer/relay/relay.go": ("FIXME: reconnect storms after an outage", "待办：限制每个地址的连接数"),
    "tests/test_playlist.py": ("TODO: test an empty playlist",),
    "vendor/ringbuf/ring.go": ("TODO: wrap around twice", "FIXME: alignment on ARM"),
    "node_modules/waveform/index.go": ("TODO: stereo waveform", "FIXME: canvas leak"),
    "build/player.py": ("TODO: bundled player", "FIXME: bundled volume"),
    ".claude/helpers/cue.py": ("TODO: cue light", "待办：提示灯"),
}  # fmt: skip

PAGES = {
    "README.md": "# Harbour Radio\n\nRead the [handbook](docs/handbook.md) and the [cables](docs/studio/setup.md#cables).\n\nHow to help: [contributing](CONTRIBUTING.md). Our past: [history](docs/history.md).\n\n![tower](assets/tower.png) ![logo](assets/logo.png)\n\n[值班手册](docs/值班手册.md)\n",
    "docs/studio/setup.md": "# Studio\n\n## Cables\n\nRed is left, see [lights](lights.md) and the [handbook](../handbook.md).\n\n```markdown\n[only an example](not/a/link.md)\n```\n",
    "docs/streamer/setup.md": "# Streamer\n\nOpen the [ports](#ports) named in the [rules](<../broadcast rules.md>), then go [back](https://radio.example/none).\n",
    "docs/节目/主持人须知.md": "# 主持人须知\n\n" + "\n".join(SENTENCES[:3]) + "\n\n不要在直播中使用手机。\n\n回到[值班手册](../值班手册.md)。\n",
    "node_modules/waveform/README.md": "# waveform\n\n[changes](CHANGES.md)\n",
    ".claude/notes/team.md": "# Team\n\n[plan](plan-of-may.md)\n",
    "build/coverage.md": "# Coverage\n\n[index](html/index.html)\n",
    "tools/archive.sh": "#!/bin/sh\n# FIXME: tapes with a blank in their names\ntar czf archive.tgz tapes\n",
    ".gitignore": "node_modules/\nbuild/\n.claude/\n*.tmp\n",
    "scratch.tmp": "TODO: nothing\n",
}  # fmt: skip

PLAN = table(__file__, "PLAN")
# Who commits that many days ago: whatever the day is, the last month and the last quarter hold some, most by Pablo
LATEST = {130: "Pablo", 100: "Pablo", 62: "Pablo", 35: "林晓", 33: "Pablo", 9: "Pablo", 2: "Pablo"}


def make(root: Path, today: dt.date) -> None:
    """Fills `root`, which must not exist, with the files and the history."""
    rng = random.Random(47)
    files = {name: text.encode() for name, text in PAGES.items()}
    files |= {name: code(name, marks) for name, marks in MARKS.items()}
    files |= pages(rng) | tables(rng) | records(rng) | logs(rng, today) | media(rng)
    root.mkdir()
    commit(root, files, today)
    for name in files:
        if name.startswith(UNTRACKED):
            write(root / name, files[name])


def code(name: str, marks: Sequence[str | None]) -> bytes:
    """A function for each mark, beside which it stands, after two names that look like marks."""
    if name.endswith(".go"):
        parts = ["package radio", "", "var todoList []string"]
        for number, mark in enumerate(marks):
            comment = [f"// {mark}"] if mark else []
            parts += ["", *comment, f"func step{number}(frames int) int {{", f"\treturn frames + {number}", "}"]
    else:
        parts = [f'"""{Path(name).stem}."""', "", "todo_list = []", "TODO_LIMIT = 9"]
        for number, mark in enumerate(marks):
            comment = [f"    # {mark}"] if mark else []
            parts += ["", "", f"def step_{number}(track):", *comment, f"    return track.start + {number}"]
    return encoded(parts)


def pages(rng: random.Random) -> dict[str, bytes]:
    def prose(sentences: int) -> list[str]:
        texts = (" ".join(rng.choices(WORDS, WEIGHTS, k=rng.randint(6, 12))) for _ in range(sentences))
        return [f"{text.capitalize()}." for text in texts]

    links = "See [lights](studio/lights.md) and [ports](streamer/setup.md)."
    rules = [line for rule in prose(17) for line in (f"- {rule}", "")]
    shifts = [SENTENCES[number % 5] + rng.choice(SENTENCES) for number in range(14)]
    return {
        "docs/handbook.md": encoded(["# Handbook", "", *prose(30), "", links, "", "## Guests", "", *prose(12)]),
        "docs/broadcast rules.md": encoded(["# Broadcast rules", "", *rules]),
        "docs/值班手册.md": encoded(["# 值班手册", "", *shifts, "", "先读[须知](节目/主持人须知.md)，再看[嘉宾名单](节目/嘉宾名单.md)。", "", "调音台使用 Mixer 软件。"]),
        "meetings/2026 autumn.md": encoded(["# Autumn meeting", "", *prose(8)]),
    }  # fmt: skip


def tables(rng: random.Random) -> dict[str, bytes]:
    day = dt.date(2026, 1, 5)
    shows, regions = ("Morning Tide", "Night Ferry", "Market Hour"), ("north", "harbour", "island")
    listeners = [f"{day + dt.timedelta(days=n)},{shows[n % 3]},{rng.choices(regions, (2, 5, 3))[0]},{rng.randint(90, 900)},{rng.choice((30, 45, 60))}" for n in range(266)]  # fmt: skip
    donors = ("Anke", "Bram", "Cora", "Dirk", "Els")
    donations = [f"{rng.choice(donors)} {n};{rng.choice(('Kiel', 'Emden', 'Husum'))};{rng.randint(5, 90)},{rng.choice((25, 50, 75, 99))};{day + dt.timedelta(days=n)}" for n in range(74)]  # fmt: skip
    feedback = [f"{300 + n},{rng.choice(('王芳', '李强', '陈静'))},{rng.choices(('青岛', '厦门'), (3, 2))[0]},{rng.choice((1, 2, 3, 4, 5, 5, ''))},{rng.choice(('好听', '太短', ''))}" for n in range(52)]  # fmt: skip
    sponsors = [f"S{n:03},{rng.choices(('海风茶馆', '灯塔书店', '渔港饭店'), (5, 3, 2))[0]},{rng.choice(('早间', '夜间'))},{rng.randint(10, 400) * 5}" for n in range(96)]  # fmt: skip
    guests = [f"{rng.choice(('Ivo', 'Jule', 'Kaya'))} {n},{rng.choice(('tides', 'jazz', 'boats'))},{rng.randint(20, 150)}" for n in range(31)]  # fmt: skip
    return {
        "data/listeners_2026.csv": encoded(["date,show,region,listeners,minutes", *listeners]),
        "data/donations.csv": encoded(["donor;town;amount;day", *donations]),
        "data/听众反馈.csv": encoded(["编号,姓名,城市,评分,意见", *feedback], "utf-8-sig"),
        "data/赞助_旧系统.csv": encoded(["编号,赞助商,时段,金额", *sponsors], "gb18030", "\r\n"),
        "data/guest list.csv": encoded(["guest,topic,fee", *guests]),
    }


def records(rng: random.Random) -> dict[str, bytes]:
    hosts = "Ruth Pablo Xiao Mina Otis Petra Quinn Rosa Sami Tove".split()
    people = [{"name": name, "role": rng.choice(("presenter", "engineer")), "city": rng.choice(("Bremen", "Aarhus")), "email": f"{name.lower()}@harbour.example"} for name in hosts]  # fmt: skip
    names = "Tide Ferry Market Jazz Weather Choir Sports Letters Boats Stories Garden Kitchen".split()
    kinds = ("talk", "music", "talk", "news", "talk", "music", "talk", "talk", "news", "talk", "talk", "music")
    shows = [{"show": name, "host": hosts[n % 10], "kind": kind, "room": f"R{n + 1}", "length": 41 + n} for n, (name, kind) in enumerate(zip(names, kinds, strict=True))]  # fmt: skip
    tracks = [{"title": title, "year": 1961 + n * 7} for n, title in enumerate(("Blue Harbour", "Salt", "Low Water"))]
    moods = ("calm", "bright", "calm", "dark", "calm", "calm")
    plays = [{"play": 5001 + n, "title": f"Song{n}", "mood": moods[n % 6], "seconds": 130 + 7 * n} for n in range(18)]
    return {
        "exports/hosts.json": document(people),
        "exports/schedule.json": document(shows),
        "exports/tracks.json": document(tracks),
        "backup/tracks.json": document([*tracks, {"title": "Old Pier", "year": 1958}]),
        "exports/plays.jsonl": encoded(json.dumps(play) for play in plays),
    }


def logs(rng: random.Random, today: dt.date) -> dict[str, bytes]:
    """Those of the studio have a line of time, level and message; those of the streamer are `name=value`."""

    def lines(day: dt.date, size: int, kinds: Mapping[str, int], shape: str = "{time} [{level}] {message}") -> bytes:
        texts = [text for text, count in kinds.items() for _ in range(count)]
        texts += ["INFO Now playing track {n}"] * (size - len(texts))
        rng.shuffle(texts)
        clock, parts = dt.datetime.combine(day, dt.time(0, 1)), []
        for text in texts:
            clock += dt.timedelta(seconds=80_000 / size)
            level, _, message = text.format(n=rng.randint(100, 999)).partition(" ")
            parts.append(shape.format(time=f"{clock:%Y-%m-%dT%H:%M:%S}", level=level, message=message))
            if level == "ERROR" and "encoder" in message:
                parts.append('  File "encode.py", line 12, in step')
        return encoded(parts)

    values = 'time={time}Z level={level} msg="{message}" station=harbour node=relay-1'
    relay = {"ERROR Listener dropped after {n} s": 211, "ERROR Upstream {n} refused the stream": 97, "ERROR Certificate of node {n} is too old": 42, "ERROR Disk quota of node {n} reached": 13, "WARN Buffer at {n} ms": 305}  # fmt: skip
    return {
        f"logs/air-{today}.log": lines(today, 260, {"ERROR Dead air for {n} s": 6, "WARNING Level of line {n} is low": 27}),
        f"logs/air-{today - dt.timedelta(days=1)}.log": lines(
            today - dt.timedelta(days=1), 410, {"ERROR Dead air for {n} s": 16, "ERROR The encoder {n} stopped": 21, "WARNING Level of line {n} is low": 58}
        ),
        "logs/relay.log": lines(dt.date(2026, 9, 12), 6_900, relay, values),
        "logs/relay.log.1": lines(dt.date(2026, 9, 11), 300, {"ERROR Listener dropped after {n} s": 33}, values),
        "logs/backup/nightly.log": lines(dt.date(2026, 9, 12), 90, {"ERROR Tape {n} cannot be read": 11, "ERROR No room for show {n}": 4, "WARNING Show {n} has no title": 8}),
    }  # fmt: skip


def media(rng: random.Random) -> dict[str, bytes]:
    logo, sound = picture(rng, 50, 30), io.BytesIO()
    with wave.open(sound, "wb") as out:
        out.setparams((1, 2, 8_000, 0, "NONE", ""))
        out.writeframes(rng.randbytes(90_000))
    sizes = {"banner": (300, 200), "covers/night tide": (150, 130), "covers/dawn": (110, 80)}
    sizes |= {f"icons/{name}": (16, 16) for name in ("play", "stop", "live")}
    return {
        **{f"assets/{name}.png": picture(rng, *size) for name, size in sizes.items()},
        **dict.fromkeys(("assets/logo.png", "assets/covers/logo copy.png", "assets/封面/标志.png"), logo),
        "assets/jingle.wav": sound.getvalue(),
    }


def picture(rng: random.Random, width: int, height: int) -> bytes:
    """A PNG of random colours."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = b"".join(b"\0" + rng.randbytes(width * 3) for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def commit(root: Path, files: Mapping[str, bytes], today: dt.date) -> None:
    """Commits by the plan, oldest first; the first commit adds every file that no other commit names."""
    plan = [
        *PLAN,
        *((who, str(today - dt.timedelta(days)), "Schedule again", (SCHEDULE,)) for days, who in LATEST.items()),
    ]
    plan.sort(key=lambda step: step[1])
    total = Counter(name for *_, names in plan for name in names)
    written: Counter[str] = Counter()
    git(root, "init", "-q", "-b", "main")
    for number, (who, day, message, names) in enumerate(plan):
        for name in names:
            written[name] += 1
            lines = files[name].splitlines(keepends=True)
            write(root / name, b"".join(lines[: len(lines) * written[name] // total[name]]))
        for name in (name for name in files if number == 0 and name not in total and not name.startswith(UNTRACKED)):
            write(root / name, files[name])
        git(root, "add", "-A")
        when = f"{day}T12:{number:02}:00+0000"
        person = ("-c", f"user.name={PEOPLE[who]}", "-c", f"user.email={who}@harbour.example")
        git(root, *person, "commit", "-q", "-m", message, when=when)


def git(root: Path, *words: str, when: str = "") -> None:
    own = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_DATE": when,
    }
    subprocess.run(["git", "-C", str(root), *words], env={**os.environ, **own}, check=True, capture_output=True)


def encoded(lines: Iterable[str], encoding: str = "utf-8", end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode(encoding)


def document(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
