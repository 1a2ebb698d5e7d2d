"""Scripts and modules are found without being imported."""

from __future__ import annotations

import sys

import pytest

from tfmulti.errors import UsageError
from tfmulti.launch import Script, check_script


@pytest.fixture
def tree(tmp_path):
    package = tmp_path / "pkg_of_test"
    package.mkdir()
    # Would fail if it were imported.
    (package / "__init__.py").write_text("raise SystemExit(7)\n")
    (package / "train.py").write_text("")
    (package / "sub").mkdir()
    (package / "sub" / "__init__.py").write_text("")
    (package / "sub" / "__main__.py").write_text("")
    (tmp_path / "script.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "module", ["pkg_of_test.train", "pkg_of_test.sub", "json.tool", "tfmulti"]
)
def test_modules_that_are_there(tree, module):
    before = set(sys.modules)
    check_script(Script(module=module), [str(tree), *sys.path])
    assert "pkg_of_test" not in set(sys.modules) - before


@pytest.mark.parametrize(
    "module",
    ["no_such", "pkg_of_test.none", "pkg_of_test", "pkg_of_test.train.x",
     "json.none", "script.py", ""],
)
def test_modules_that_are_not(tree, module):
    with pytest.raises(UsageError, match="not found"):
        check_script(Script(module=module), [str(tree), *sys.path])


def test_files(tree):
    check_script(Script(path=str(tree / "script.py")))
    with pytest.raises(UsageError, match="does not exist"):
        check_script(Script(path=str(tree / "none.py")))
    with pytest.raises(UsageError, match="folder"):
        check_script(Script(path=str(tree)))
