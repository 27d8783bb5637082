"""Node packages that a skill's script declares are set up once with consent, from a registry, without their scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from navigator_kernel.adapters.processes.environments import NodeEnvironments
from navigator_kernel.errors import ConsentNeeded, FetchFailed, IntegrityMismatch, KernelError, NotLoadable, Refused
from navigator_kernel.skills.formats.dependencies import fingerprint, needed
from navigator_kernel.values.resource import SkillDef
from npm_registry import Registry, serving
from tools.bench_of_tools import Toolbox, toolbox

pytestmark = [pytest.mark.requirement("SAF-3"), pytest.mark.ci]

COMMON = "const hull = require('hull');\nconsole.log('require', hull.name, require('@boats/oar').name);\n"
MODULE = "import hull from 'hull';\nimport { name } from '@boats/oar';\nconsole.log('import', hull.name, name);\n"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Registry]:
    with serving(monkeypatch, home) as held:
        canary = home / "canary"
        held.add("hull", {"index.js": "exports.name = require('plank').name + ' hull';\n"}, dependencies={"plank": "^1.0.0"},
                 scripts={"preinstall": f"touch {canary}", "postinstall": f"touch {canary}"}, hasInstallScript=True)  # fmt: skip
        held.add("plank", {"index.js": "exports.name = 'oak';\n"})
        held.add("@boats/oar", {"index.mjs": "export const name = 'oar';\n", "index.js": "exports.name = 'oar';\n"},
                 exports={"import": "./index.mjs", "require": "./index.js"})  # fmt: skip
        yield held


@pytest.fixture
def box(tmp_path: Path, registry: Registry) -> Toolbox:
    root = tmp_path.resolve() / "project"
    root.mkdir()
    folder = root / ".claude/skills/painter"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts/common.cjs").write_text(COMMON)
    (folder / "scripts/module.mjs").write_text(MODULE)
    (folder / "package.json").write_text(json.dumps({"dependencies": {"hull": "^1.0.0", "@boats/oar": "1.0.0"}}))
    return toolbox(root)


@pytest.mark.requirement("JIT-12")
def test_a_script_has_its_packages_after_a_yes_and_offline_from_then_on(
    box: Toolbox, registry: Registry, home: Path
) -> None:
    with pytest.raises(ConsentNeeded) as needed_yes:
        box.call("run", command="node scripts/common.cjs")
    assert "(npm: @boats/oar@1.0.0, hull@^1.0.0)" in needed_yes.value.message and registry.asked == []
    assert "require oak hull oar" in box.agreed("run", command="node scripts/common.cjs").text
    assert set(registry.asked) >= {"hull", "plank", "@boats/oar", "tarballs/hull/1.0.0"}
    registry.asked.clear()
    assert "import oak hull oar" in box.agreed("run", 2, command="node scripts/module.mjs").text
    assert registry.asked == [] and not (home / "canary").exists()


def made(folder: Path, *requirements: str) -> Path:
    return NodeEnvironments(folder, timeout=60.0).make(fingerprint(requirements, ("node",)), requirements)


def test_an_environment_that_was_changed_is_made_again(tmp_path: Path, registry: Registry) -> None:
    place, name = made(tmp_path, "npm:plank@1.0.0"), fingerprint(["npm:plank@1.0.0"], ("node",))
    assert NodeEnvironments(tmp_path).path(name) == place
    (place / "node_modules/plank/index.js").write_text("exports.name = 'straw';\n")
    assert NodeEnvironments(tmp_path).path(name) is None
    made(tmp_path, "npm:plank@1.0.0")
    assert "oak" in (place / "node_modules/plank/index.js").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, f"{name}.lock"]


@pytest.mark.parametrize(
    ("requirement", "kind", "reason"),
    [
        ("npm:none@1.0.0", FetchFailed, "not-found"),
        ("npm:plank@9", FetchFailed, "not-found"),
        ("npm:forged@1.0.0", IntegrityMismatch, "hash"),
        ("npm:reaches@1.0.0", KernelError, ""),
        ("npm:elsewhere@1.0.0", KernelError, ""),
        ("npm:direct@1.0.0", Refused, "url"),
    ],
)
def test_packages_that_cannot_be_installed_raise_a_typed_error_and_leave_no_environment(
    tmp_path: Path, registry: Registry, requirement: str, kind: type[KernelError], reason: str
) -> None:
    registry.add("forged", {"index.js": ""})
    registry.named["forged/1.0.0"] = b"other bytes"
    registry.add("reaches", {"index.js": ""}, dependencies={"x": f"git+file://{tmp_path}/repo.git"})
    registry.add("elsewhere", {"index.js": ""}, dependencies={"x": f"file:{tmp_path}"})
    registry.add("direct", {"index.js": ""}, dependencies={"x": f"{registry.url}/tarballs/plank/1.0.0"})
    folder = tmp_path / "environments"
    with pytest.raises(kind) as caught:
        made(folder, requirement)
    assert caught.value.data.get("reason", "") == reason or not reason
    assert [path.name for path in folder.iterdir() if not path.name.endswith(".lock")] == []


def test_without_npm_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotLoadable, match="need npm"):
        made(tmp_path, "npm:plank@1.0.0")


def declared(folder: Path, body: object, script: str = "scripts/a.js") -> tuple[str, ...]:
    (folder / "scripts").mkdir(exist_ok=True)
    (folder / "package.json").write_text(body if isinstance(body, str) else json.dumps(body))
    skill = SkillDef(name="s", description="d", path=folder / "SKILL.md", folder=folder)
    return needed(skill, [folder / script], ())


@pytest.mark.parametrize(
    ("version", "found"),
    [("^1.0.0", "^1.0.0"), ("", "*"), (">=1 <2 || 3.x", ">=1 <2 || 3.x"), ("latest", "latest")],
)
def test_names_and_versions_are_taken(tmp_path: Path, version: str, found: str) -> None:
    assert declared(tmp_path, {"dependencies": {"plank": version}}) == (f"npm:plank@{found}",)
    assert declared(tmp_path, {"devDependencies": {"plank": version}}) == ()
    assert declared(tmp_path, {"dependencies": {"plank": version}}, "scripts/a.py") == ()


@pytest.mark.parametrize(
    ("name", "version"),
    [("a", "file:../x"), ("a", "git+https://example.org/a.git"), ("a", "https://example.org/a.tgz"), ("a", "ann/a"),
     ("a", "npm:b@1"), ("a", "link:../x"), ("a", "workspace:*"), ("../a", "1"), ("A", "1"), ("-g", "1 --x=/y"), ("a b", "1")],
)  # fmt: skip
def test_a_dependency_with_an_outside_source_or_an_invalid_name_is_refused(
    tmp_path: Path, name: str, version: str
) -> None:
    with pytest.raises(Refused) as caught:
        declared(tmp_path, {"dependencies": {name: version}})
    assert caught.value.data["reason"] == "package"


@pytest.mark.parametrize("body", ["{", "[]", {"dependencies": []}, {"dependencies": {"a": 1}}])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, body: object) -> None:
    with pytest.raises(NotLoadable):
        declared(tmp_path, body)


def test_a_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "skill").mkdir()
    (tmp_path / "other.json").write_text('{"dependencies": {"plank": "1"}}')
    (tmp_path / "skill/package.json").symlink_to(tmp_path / "other.json")
    skill = SkillDef(name="s", description="d", path=tmp_path / "skill/SKILL.md", folder=tmp_path / "skill")
    with pytest.raises(KernelError):
        needed(skill, [tmp_path / "skill/a.js"], ())


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize("packages", [["plank"], ["npm:plank@^1.0.0"]])
def test_a_line_with_node_has_the_packages_that_the_model_names_and_their_programs(
    box: Toolbox, registry: Registry, packages: list[str]
) -> None:
    program = "#!/usr/bin/env node\nconsole.log('sawn', require('./index.js').name);\n"
    registry.add("plank", {"index.js": "exports.name = 'pine';\n", "saw.js": program}, bin={"saw": "./saw.js"})
    box.call("write", file_path="use.js", content="console.log('used', require('plank').name);\n")
    line = "node use.js && npx -y saw x | cat && saw"
    assert "used pine\nsawn pine\nsawn pine" in box.agreed("run", 2, command=line, packages=packages).text
    assert len([one for one in box.asked if "npm: plank" in one.message]) == 1
    registry.asked.clear()
    box.agreed("run", 3, command="node use.js", packages=packages)
    assert registry.asked == []
