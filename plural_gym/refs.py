"""Code by reference: `file.py:name` in a project's folder, and back from an object to where it stands.

The project loader and the App host load author code through here. While a file is loaded, the name
`plural` means this package's words, even beside another distribution of that name.
"""

import base64
import hashlib
import importlib.util
import inspect
import pickle
import sys
import threading
import types
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import cloudpickle

from plural_gym.errors import DefinitionError, raised_at, suggest

_loaded: dict[tuple[str, str], types.ModuleType] = {}
_loading = threading.RLock()
_BY_VALUE = "<dynamic-code>"
"""What stands for the file in code that was pickled by value."""


def load(reference: str, folder: Path) -> Any:
    """The object that `file.py:name` names in `folder`.

    The same file with the same content is loaded once, so that a class keeps its identity.

    Raises:
        DefinitionError: no such file, no such name in it (with what it has), or the file fails to import.
    """
    file_name, _, name = reference.partition(":")
    path = folder / file_name
    if not file_name.endswith(".py") or not name.isidentifier():
        raise DefinitionError(f"{reference!r} is no reference to code; write 'file.py:name'.")
    if not path.is_file():
        present = [found.name for found in folder.glob("*.py")]
        raise DefinitionError(f"{file_name!r} not found in {folder.name}/; {suggest(file_name, present)}")
    module = _module(path)
    if not hasattr(module, name):
        own = [
            key
            for key, value in vars(module).items()
            if not key.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
        raise DefinitionError(f"{reference!r} not found in {folder.name}/; {suggest(name, own)}")
    return getattr(module, name)


def _module(path: Path) -> types.ModuleType:
    path = path.resolve()
    source = path.read_bytes()
    digest = hashlib.sha256(source).hexdigest()
    with _loading:
        known = _loaded.get((str(path), digest))
        if known is not None:
            return known
        tag = hashlib.sha256(str(path).encode() + digest.encode()).hexdigest()[:12]
        module = types.ModuleType(f"plural_project_{tag}_{path.stem}")
        module.__file__ = str(path)
        module.__dict__["__plural_source__"] = (str(path), digest)
        sys.modules[module.__name__] = module
        foreign = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_foreign_plural(name)}
        before = set(sys.modules)
        sys.path.insert(0, str(path.parent))
        try:
            sys.modules["plural"] = import_module("plural_gym")
            exec(compile(source, str(path), "exec"), module.__dict__)
        except Exception as error:
            sys.modules.pop(module.__name__, None)
            place = raised_at(error, str(path.parent))
            raise DefinitionError(
                f"{path.name} cannot be imported: {type(error).__name__}: {error} (at {place})."
            ) from error
        finally:
            sys.path.remove(str(path.parent))
            sys.modules.pop("plural", None)
            sys.modules.update(foreign)
            # Siblings (`from words import …`) must not be taken for another folder's file of that name.
            for name in set(sys.modules) - before:
                file = getattr(sys.modules[name], "__file__", None)
                if file and Path(file).parent == path.parent and name != module.__name__:
                    del sys.modules[name]
        _loaded[str(path), digest] = module
        return module


def _is_foreign_plural(name: str) -> bool:
    return name == "plural" or name.startswith("plural.")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an author's class or function stands, and whether it can be loaded again from there."""

    name: str
    """The object's name inside its file."""
    file: str | None
    """Absolute path of the file; None for code that stands in none."""
    sha256: str | None
    """Digest of the file's content as it was loaded; None without a file."""
    why_not: str | None
    """Why a later process cannot load it from the file; None where it can."""

    @property
    def portable(self) -> bool:
        return self.why_not is None


def origin(target: Any) -> Origin:
    """Where `target`, a class or function, comes from."""
    name = getattr(target, "__qualname__", type(target).__qualname__)
    module = sys.modules.get(getattr(target, "__module__", None) or "")
    loaded = getattr(module, "__plural_source__", None)
    if loaded is not None and "<locals>" not in name and "<lambda>" not in name:
        return Origin(name, loaded[0], loaded[1], None)
    try:
        file = inspect.getsourcefile(target)
    except (TypeError, OSError):
        file = None
    if file is None or not Path(file).is_file():
        return Origin(name, None, None, f"{name} is defined in a notebook or at a prompt, not in a file")
    digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    file = str(Path(file).resolve())
    if "<locals>" in name or "<lambda>" in name:
        return Origin(name, file, digest, f"{name} is defined inside a function")
    if module is None or module.__name__ == "__main__":
        return Origin(name, file, digest, f"{name} is defined in the script that runs; move it to a module")
    if "." in name:
        return Origin(name, file, digest, f"{name} is defined inside a class; move it to the module")
    return Origin(name, file, digest, None)


def pack(target: Any) -> dict[str, str]:
    """How another process on this machine gets `target`: by file, by module, or, last, by value."""
    found = origin(target)
    module_name = getattr(target, "__module__", "") or ""
    module = sys.modules.get(module_name)
    if found.portable and getattr(module, "__plural_source__", None) is not None:
        assert found.file is not None
        return {"file": found.file, "name": found.name, "sha256": found.sha256 or ""}
    if found.portable and _importable(module_name, found.file):
        return {"module": module_name, "name": found.name, "sha256": found.sha256 or ""}
    # By value: a notebook's class, a closure, or a test module that no fresh interpreter could import.
    register = module is not None and module_name != "__main__"
    if register:
        cloudpickle.register_pickle_by_value(module)
    try:
        packed = {"pickle": base64.b64encode(cloudpickle.dumps(target)).decode()}
    except Exception as error:
        raise DefinitionError(
            f"{found.name} cannot be sent to a worker process: {error}; move it to a file of a project."
        ) from error
    finally:
        if register:
            cloudpickle.unregister_pickle_by_value(module)
    return packed if found.file is None else {**packed, "written_in": found.file}


def unpack(packed: dict[str, str]) -> Any:
    """The counterpart of `pack`, in the other process. Only for what this machine's own Job packed.

    Raises:
        DefinitionError: the file has changed since; what runs must be what was pinned.
    """
    if "pickle" in packed:
        made = pickle.loads(base64.b64decode(packed["pickle"]))
        if "written_in" in packed:
            _name_file(made, packed["written_in"])
        return made
    found: Any = _module(Path(packed["file"])) if "file" in packed else import_module(packed["module"])
    path = Path(found.__file__ or "")
    if hashlib.sha256(path.read_bytes()).hexdigest() != packed["sha256"]:
        raise DefinitionError(f"{path.name} has changed since it was loaded; start anew to use it as it is.")
    for part in packed["name"].split("."):
        found = getattr(found, part)
    return found


def _name_file(made: Any, file: str) -> None:
    """Put back the file of a function, or of a class's methods, that pickling by value leaves out.

    Without it a fault would name no place that anybody can open.
    """
    functions = [made, *vars(made).values()] if isinstance(made, type) else [made]
    for function in functions:
        function = getattr(function, "__func__", None) or getattr(function, "fget", None) or function
        function = inspect.unwrap(function) if callable(function) else function
        if isinstance(function, types.FunctionType):
            function.__code__ = _written_in(function.__code__, file)


def _written_in(code: types.CodeType, file: str) -> types.CodeType:
    if code.co_filename != _BY_VALUE:
        return code
    inner = (_written_in(one, file) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(inner))


def _importable(module_name: str, file: str | None) -> bool:
    try:
        spec = importlib.util.find_spec(module_name)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin is not None and file == str(Path(spec.origin).resolve())
