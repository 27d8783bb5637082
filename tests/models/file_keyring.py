"""A keyring in a file that a test names: `PYTHON_KEYRING_BACKEND=file_keyring.Keyring`, the file in `FILE_KEYRING`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class Keyring(KeyringBackend):
    priority = 1

    def _held(self) -> dict[str, str]:
        file = Path(os.environ["FILE_KEYRING"])
        found: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
        return found

    def _keep(self, held: dict[str, str]) -> None:
        Path(os.environ["FILE_KEYRING"]).write_text(json.dumps(held))

    def get_password(self, service: str, username: str) -> str | None:
        return self._held().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._keep({**self._held(), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        held = self._held()
        if held.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError
        self._keep(held)
