"""What a reward function can read of its Step, told from its code before it is called.

To take an App's State as a value costs as much as a small game's step. A reward function that reads it where
this module can see needs no State that it does not name; whatever is not seen through counts as reading all.
"""

import dis
from types import FunctionType
from typing import Any

_LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_HIDDEN_WAYS = frozenset({"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "breakpoint"})
"""Names by which code reaches variables that it does not name."""


def attributes_read(function: Any) -> frozenset[str] | None:
    """The attributes of its only argument that a function can read; None: perhaps any.

    Told of plain functions that do nothing with the argument but read attributes: once it is passed on,
    stored, or used by a function inside, anything may be read.
    """
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    if code.co_argcount != 1 or code.co_kwonlyargcount or code.co_flags & 0x0C:  # *args, **kwargs
        return None
    name = code.co_varnames[0]
    if name in code.co_cellvars or not _HIDDEN_WAYS.isdisjoint(code.co_names):
        return None
    found = set()
    instructions = [one for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"]
    for one, following in zip(instructions, [*instructions[1:], None], strict=True):
        if not _concerns(one, name):
            continue
        if one.opname not in _LOADS or following is None or following.opname not in _ATTRIBUTES:
            return None
        found.add(str(following.argval))
    return frozenset(found)


def _concerns(instruction: dis.Instruction, name: str) -> bool:
    """Whether an instruction works on the variable of this name; some work on two."""
    if "_FAST" not in instruction.opname:
        return False
    value = instruction.argval
    return name in value if isinstance(value, tuple) else value == name
