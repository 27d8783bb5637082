"""Honest skills with unusual characters or data, which a naive scanner of bytes takes for harm."""

from __future__ import annotations

import base64
import json
import struct
import zlib

from scanning.samples import of

script = of("unusual-characters")
data = of("unusual-data")

ZWJ, VS16, ZWNJ, RLM, RLI, PDI = "\u200d", "\ufe0f", "\u200c", "\u200f", "\u2067", "\u2069"
FAMILY = ZWJ.join("\U0001f468\U0001f469\U0001f467\U0001f466")
RAINBOW = f"\U0001f3f3{VS16}{ZWJ}\U0001f308"
CODER = f"\U0001f469{ZWJ}\U0001f4bb"
SCOTLAND = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbsct") + "\U000e007f"


def png() -> bytes:
    """A PNG image of one white pixel."""

    def chunk(kind: bytes, held: bytes) -> bytes:
        return struct.pack(">I", len(held)) + kind + held + struct.pack(">I", zlib.crc32(kind + held))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    dots = zlib.compress(b"\0\xff\xff\xff")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", dots) + chunk(b"IEND", b"")


CHARACTERS = (
    script(
        "emoji-guide",
        f"Explains emoji {RAINBOW}, how they are put together, and when to use them",
        f"""# Emoji {VS16}

A family is four emoji with joiners: {FAMILY}. Hearts have a selector: \u2764{VS16}, and so have digits: 1{VS16}\u20e3.
Skin tones follow: \U0001f44d\U0001f3fd. Flags are letters: \U0001f1ee\U0001f1f8; Scotland's is made of tags: {SCOTLAND}.

| emoji | use |
|---|---|
| \u2705 | done |
| \u26a0{VS16} | careful |
| {CODER} | at work |
""",
    ),
    script(
        "persian-editor",
        "Edits Persian texts: half spaces, digits, punctuation",
        f"""# ویرایش فارسی

نیم{ZWNJ}فاصله میان پیشوند و فعل می{ZWNJ}آید: می{ZWNJ}نویسم، نمی{ZWNJ}خواهم، کتاب{ZWNJ}ها، خانه{ZWNJ}ای، رفته{ZWNJ}اند.

- عددها را فارسی بنویسید: ۱۲۳
- گیومه: «متن»
- «ها» جدا نمی{ZWNJ}شود: گل{ZWNJ}ها، دوست{ZWNJ}هایم
""",
    ),
    script(
        "hebrew-arabic-layout",
        "Lays out Hebrew and Arabic texts with Latin names in them",
        f"""# פריסה

השם {RLI}Navigator{PDI} נכתב באותיות לטיניות, והגרסה {RLM}(2.0){RLM} אחריו.

# التنسيق

يكتب الاسم {RLI}SKILL.md{PDI} كما هو، ويوضع الرقم {RLM}+3{RLM} بعده.

The isolates keep a Latin name in its place; marks keep brackets and signs where they belong.
""",
    ),
    script(
        "contract-summary",
        "总结合同要点（用户要审阅合同、找出风险条款时使用）",
        """# 合同摘要

先列出双方、金额、期限，再列出风险条款。

1. 付款条件：何时付款，是否有违约金
2. 解除条件：提前多少天通知
3. 保密条款：范围和期限

不要修改合同原文；如果条款不清楚，请提醒用户咨询律师。
""",
    ),
    script(
        "text-normalizer",
        "Removes invisible characters from texts",
        "# Normalizer\n\n`python scripts/normalize.py < in > out` removes zero-width spaces, joiners, byte order marks and tag characters.\n",
        {
            "scripts/normalize.py": r'''"""Removes characters that nobody sees."""
import sys
import unicodedata

UNSEEN = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))
TAGS = dict.fromkeys(range(0xE0000, 0xE0080))

sys.stdout.write(unicodedata.normalize("NFC", sys.stdin.read().translate(UNSEEN | TAGS)))
''',
            "tests/test_normalize.py": 'def test_nothing_unseen_is_left():\n    assert "a\\u200bb".replace("\\u200b", "") == "ab"\n',
        },
    ),
)

PICTURE = base64.b64encode(png()).decode()

DATA = (
    data(
        "html-mail",
        "Writes HTML mails that look the same everywhere",
        f"# HTML mail\n\n![dot](data:image/png;base64,{PICTURE})\n\nPictures are put into the mail itself, as in `assets/mail.html`.\n",
        {
            "assets/mail.html": f'<body style="color:#333;background:#fff"><img alt="logo" src="data:image/png;base64,{PICTURE * 4}">\n'
            '<p style="font-size:14px">{{text}}</p><span style="display:none">{{preheader}}</span></body>\n',
            "assets/dot.png": png(),
        },
    ),
    data(
        "chart-page",
        "Makes a page with a chart from a table",
        "# Chart page\n\nThe page uses `assets/chart.min.js`, which needs no network.\n",
        {
            "assets/chart.min.js": '!function(t,e){"object"==typeof exports?module.exports=e():t.Chart=e()}(globalThis,function(){"use strict";'
            + "".join(f"var {a}{b}=function(t,e){{return t<<{at % 7}^e>>>{at % 5}|0x{at * 40503 % 65536:x}}};"
                      for at, (a, b) in enumerate((a, b) for a in "abcdefgh" for b in "klmnopqr"))
            + 'return{version:"4.0.1",draw:function(t){return t.map(function(t){return String.fromCharCode(9601+t%8)}).join("")}}});\n',
            "index.html": '<!doctype html><script src="assets/chart.min.js"></script><div id="chart"></div>\n',
        },
        needs=("node",),
    ),
    data(
        "jwt-reader",
        "Shows what is in a JSON web token",
        "# JWT reader\n\n`echo TOKEN | node scripts/jwt.js`; the signature is not checked. In Python: `scripts/jwt.py`.\n",
        {
            "scripts/jwt.js": """let token = "";
process.stdin.on("data", (part) => (token += part));
process.stdin.on("end", () => {
  const [, body] = token.trim().split(".");
  if (body) console.log(JSON.stringify(JSON.parse(atob(body)), null, 2));
});
""",
            "scripts/jwt.py": '''import base64
import json
import sys

EXAMPLE = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkFkYSJ9.c2lnbmF0dXJl"


def body(token: str) -> dict:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


print(json.dumps(body(sys.argv[1] if len(sys.argv) > 1 else EXAMPLE), indent=2))
''',
        },
        needs=("node",),
    ),
    data(
        "terminal-demo",
        "Records and replays terminal sessions",
        "# Terminal demo\n\nRecordings are in the asciicast format; see `assets/demo.cast`.\n",
        {
            "assets/demo.cast": json.dumps({"version": 2, "width": 80, "height": 24}) + "\n"
            + json.dumps([0.5, "o", "\x1b[32m$ \x1b[0mmake test\r\n"]) + "\n"
            + json.dumps([1.5, "o", "\x1b[1A\x1b[2K\x1b[32m12 passed\x1b[0m\r\n"]) + "\n",
            "assets/colours.log": "\x1b[32mok\x1b[0m 12 passed\n\x1b[1;31mfailed\x1b[0m 1\n",
        },
    ),
)  # fmt: skip

UNUSUAL = (*CHARACTERS, *DATA)
