"""Makes the README's picture: a real session in a new project, recorded and saved as SVG by rich."""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).resolve().parent / "session.svg"
SESSION = (
    ("skill", "list"),
    ("route", "审查这段代码"),
    ("ask", "how many words are in: to be or not to be"),
    ("why",),
)


def main() -> None:
    console = Console(record=True, width=108, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "HOME": folder, "PYTHONUTF8": "1", "NO_COLOR": "1"}
        project = Path(folder) / "project"
        project.mkdir()
        for words in (("init",), *SESSION):
            line = [sys.executable, "-m", "navigator_kernel.cli.main", "--style", "emoji", *words]
            done = subprocess.run(line, cwd=project, env=env, capture_output=True, text=True, check=True)
            if words in SESSION:
                said = " ".join(f'"{word}"' if " " in word else word for word in words)
                console.print(Text(f"$ navigator {said}", style="bold green"))
                for row in done.stdout.rstrip().split("\n"):
                    indent = len(row) - len(row.lstrip())
                    console.print(Text("\u00a0" * indent + row.lstrip()), overflow="ellipsis", no_wrap=True)
                console.print()
    console.save_svg(str(TARGET), title="navigator")
    print(f"written: {TARGET.name}")


if __name__ == "__main__":
    main()
