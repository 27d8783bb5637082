"""Waits until a page of the gateway has read what it shows."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tables import table

HEADINGS = table(__file__, "HEADINGS")
READING = (
    "Loading[,…]|Reading runs…|The checks run…|Running…|Scanning its files…|What a list of all skills costs"
    "|正在加载|正在读取运行记录…|正在检查…|正在扫描文件…|列出全部技能的开销"
)


def wait_until_read(page: Page, at: str) -> None:
    """Waits until the page `at` has replaced the one before it, and nothing on it says that it is still being read."""
    name = at.strip("/").partition("?")[0]
    if name.startswith("chat/"):
        page.get_by_role("article").first.wait_for()
    else:
        page.locator("main h1").filter(has_text=re.compile(f"^({HEADINGS[name]})$")).wait_for()
    if "?name=" in at:
        page.get_by_role("dialog").locator("dl").wait_for()
    expect(page.locator("body")).not_to_contain_text(re.compile(READING))
