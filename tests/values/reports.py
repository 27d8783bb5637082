"""One report in each of the five states, with its lines (RET-1)."""

from __future__ import annotations

from navigator_kernel.values.packet import Meta, Report, State
from tables import table

TS = "2025-01-29T10:30:00Z"

REPORTS: dict[State, Report] = {
    "success": Report(
        state="success",
        summary="扫描完成: 新增 2 个, 更新 3 个",
        meta=Meta(agent="worker", time=0.5, ts=TS),
        data={"added": ["a", "b"], "updated": ["c", "d", "e"], "total": 5},
        raw="added a b\nupdated c d e\n",
    ),
    "partial": Report(
        state="partial",
        summary="执行部分完成: 3/5 个文件处理成功",
        meta=Meta(agent="skills", time=2.1, ts=TS),
        data={"processed": 3, "failed": 2, "items": ["x.md", "y.md", "z.md"]},
        raw="x.md\ny.md\nz.md\n",
        effects=("x.md",),
    ),
    "pending": Report(
        state="pending",
        summary="等待参数: 需要 input_file",
        meta=Meta(agent="skills", time=0.1, ts=TS),
        data={"required": ["input_file"], "optional": ["format"]},
    ),
    "error": Report(
        state="error",
        summary="RuntimeError: 脚本执行失败",
        meta=Meta(agent="worker", time=0.1, ts=TS),
        data={"type": "FileNotFoundError", "msg": "bin/script.py not found"},
        raw="Traceback\n",
    ),
    "timeout": Report(
        state="timeout",
        summary="Timeout: 资源读取超时 (>30s)",
        meta=Meta(agent="mcp", time=30, ts=TS),
        data={"uri": "file://large.json", "elapsed": 30},
    ),
}

LINES: dict[State, str] = table(__file__, "LINES")
