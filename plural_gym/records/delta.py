"""What changed between two States, as small as it can be said in JSON.

The recorder writes `delta(before, after)` with every step, so that a State of 1 MB over 1,000 steps does not
write 1 GB; a Trial's folder puts the States together again with `apply`. Values are JSON values: dicts with
string keys, lists, strings, numbers, booleans, None.

A delta is an object with some of these keys; a nested delta stands where a part changed a little:

    value   the new value, whole                               any
    remove  [key, ...]                                         dict
    at      {key: delta}, or [[index before, delta], ...]      dict, list
    set     {key: value}; new keys go to the end, in order     dict
    place   [[index after, key], ...] for keys elsewhere       dict
    splice  [[index before, how many go, [items]], ...]        list
    append  [items]                                            list
    text    [index before, how many characters go, string]     str
"""

import copy
import marshal
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from plural_gym.errors import RecordError
from plural_gym.records.strict_json import encode

JSON = Any
"""A JSON value. (An exact recursive type helps no caller: a State's shape is its App's business.)"""

_ABSENT = object()
_PLAIN = frozenset({str, int, bool, type(None)})
_SHORT_TEXT = 64
"""Strings below this are replaced whole."""
_MAX_EDITS = 64
"""Insertions and removals searched for in a list; with more, items are compared pairwise."""
_EDIT_BUDGET = 200_000
"""Bounds the search for edits in long lists: items times edits."""


def delta(before: JSON, after: JSON) -> JSON | None:
    """What turns `before` into `after`; None where nothing changed.

    1, 1.0 and True differ, and so do dicts whose keys stand in another order. As JSON never more than 32
    bytes bigger than `{"value": after}`. Shares nothing with its inputs. Equal subtrees are skipped at the
    speed of a copy.
    """
    try:
        if type(before) is dict and type(after) is dict:
            grown = _growth(before, after)
            if grown is not _ABSENT:
                return grown
        return None if _same(before, after) else _change(before, after)
    except RecursionError:
        return {"value": copied(after)}


def apply(before: JSON, change: JSON | None) -> JSON:
    """The value that `change = delta(before, value)` was taken for, sharing nothing with its inputs.

    Raises RecordError if `change` was not taken from `before`.
    """
    return patch(copied(before), change)


def patch(value: JSON, change: JSON | None) -> JSON:
    """As `apply`, for a caller who owns `value`: changes it in place where it can. Use the result."""
    if change is None:
        return value
    try:
        return _patched(value, change)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(
            f"A recorded change of State does not fit the State before it ({type(error).__name__}: {error})."
            " The steps were edited or come from another version; run the Trial again."
        ) from error


def copied(value: JSON) -> JSON:
    """A copy of a JSON value that shares no container with it, several times faster than `deepcopy`."""
    try:
        return marshal.loads(_frozen(value))
    except ValueError:
        return copy.deepcopy(value)


def _growth(before: dict[str, Any], after: dict[str, Any]) -> Any:
    """The delta where fields only took other scalars and lists only grew; None if equal; _ABSENT otherwise.

    What most steps of most Apps come to. The general search takes ten times as long.
    """
    if len(before) != len(after):
        return _ABSENT
    at: dict[str, Any] = {}
    put: dict[str, Any] = {}
    for (key, old), (same_key, new) in zip(before.items(), after.items(), strict=True):
        if key != same_key:
            return _ABSENT
        if old is new:
            continue
        kind = type(new)
        if kind is list and type(old) is list and len(new) > len(old) > 0:
            if not _same(old, new[: len(old)]):
                return _ABSENT
            at[key] = {"append": copied(new[len(old) :])}
        elif kind in _PLAIN and type(old) in _PLAIN and (kind is not str or len(new) < _SHORT_TEXT):
            if kind is not type(old) or old != new:
                put[key] = new
        elif not _same(old, new):
            return _ABSENT
    if len(at) > 2:
        return _ABSENT  # Each costs a dozen bytes, which the general search weighs.
    if not put:
        return {"at": at} if at else None
    return {"at": at, "set": put} if at else {"set": put}


def _frozen(value: JSON) -> bytes:
    """Bytes equal exactly where values are: version 2 of the format knows no sharing and no interning."""
    return marshal.dumps(value, 2)


def _same(before: JSON, after: JSON) -> bool:
    if before is after:
        return True
    if type(before) is not type(after) or before != after:
        return False
    if isinstance(before, str | int):
        return True
    try:
        return _frozen(before) == _frozen(after)
    except ValueError:
        return False


def _change(before: JSON, after: JSON) -> dict[str, Any]:
    """The delta of two values that are not the same."""
    change: dict[str, Any] = {}
    if isinstance(before, dict) and isinstance(after, dict):
        change = _dict_change(before, after)
    elif isinstance(before, list) and isinstance(after, list):
        change = _list_change(before, after)
    elif isinstance(before, str) and isinstance(after, str) and min(len(before), len(after)) >= _SHORT_TEXT:
        change = _text_change(before, after)
    if change and _reaches(after, len(encode(change)) - len('{"value":}')):
        return change
    return {"value": copied(after)}


def _reaches(value: JSON, size: int) -> bool:
    """Whether `value` takes at least `size` bytes of JSON. Looks no further than that; errs towards no."""
    waiting, total = [value], 0
    while waiting and total < size:
        item = waiting.pop()
        if isinstance(item, str):
            total += len(item) + 2
        elif isinstance(item, list):
            total += 1 + max(len(item), 1)
            waiting.extend(item)
        elif isinstance(item, dict):
            total += 1 + max(len(item), 1)
            for key in item:
                total += len(key) + 3
                if total >= size:
                    return True
            waiting.extend(item.values())
        else:
            total += len(repr(item)) - isinstance(item, float)
    return total >= size


# dicts


def _dict_change(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    at: dict[str, Any] = {}
    put: dict[str, Any] = {}
    for key, value in after.items():
        old = before.get(key, _ABSENT)
        if old is _ABSENT:
            put[key] = copied(value)
        elif not _same(old, value):
            change = _change(old, value)
            if "value" in change:
                put[key] = change["value"]
            else:
                at[key] = change
    parts: dict[str, Any] = {"at": at, "set": put}
    if list(before) != list(after):
        gone = [key for key in before if key not in after]
        parts = {"remove": gone, **parts, "place": _places(before, after)}
    return {name: part for name, part in parts.items() if part}


def _places(before: dict[str, Any], after: dict[str, Any]) -> list[list[Any]]:
    """[index, key] of each key that the plain rule (old keys stay, new ones go to the end) puts elsewhere."""
    keys = list(after)
    if keys == [key for key in before if key in after] + [key for key in keys if key not in before]:
        return []
    rank = {key: index for index, key in enumerate(before)}
    old = [key for key in keys if key in rank]
    staying = {old[index] for index in _longest_rising([rank[key] for key in old])}
    last = max(index for index, key in enumerate(keys) if key in staying)
    return [[i, key] for i, key in enumerate(keys) if key not in staying and (i < last or key in rank)]


def _longest_rising(numbers: Sequence[int]) -> list[int]:
    """Indices of a longest rising subsequence of distinct numbers, by patience sorting."""
    tops: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for index, number in enumerate(numbers):
        pile = bisect_left(tops, number)
        tops[pile : pile + 1] = [number]
        ends[pile : pile + 1] = [index]
        previous.append(ends[pile - 1] if pile else -1)
    chain: list[int] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chain.append(index)
        index = previous[index]
    return chain[::-1]


# lists


def _list_change(before: list[Any], after: list[Any]) -> dict[str, Any]:
    head = _common(before, after, min(len(before), len(after)), _from_start)
    tail = _common(before, after, min(len(before), len(after)) - head, _from_end)
    at: list[list[Any]] = []
    splice: list[list[Any]] = []
    append: list[Any] = []
    for a, b, c, d in _blocks(before[head : len(before) - tail], after[head : len(after) - tail]):
        pairs = min(b - a, d - c)
        for offset in range(head, head + pairs):
            if not _same(before[a + offset], after[c + offset]):
                at.append([a + offset, _change(before[a + offset], after[c + offset])])
        start, gone, items = head + a + pairs, b - a - pairs, after[head + c + pairs : head + d]
        if start == len(before):
            append = copied(items)
        elif gone or items:
            splice.append([start, gone, copied(items)])
    parts = {"at": at, "splice": splice, "append": append}
    return {name: part for name, part in parts.items() if part}


def _from_start(items: list[Any], start: int, stop: int) -> list[Any]:
    return items[start:stop]


def _from_end(items: list[Any], start: int, stop: int) -> list[Any]:
    return items[len(items) - stop : len(items) - start]


def _common(
    before: list[Any], after: list[Any], most: int, cut: Callable[[list[Any], int, int], list[Any]]
) -> int:
    """How many items are the same from one end, at most `most`: in strides, halved where they differ."""
    same, stride = 0, 256
    while same < most and stride:
        stop = min(same + stride, most)
        if _same(cut(before, same, stop), cut(after, same, stop)):
            same = stop
        else:
            stride //= 2
    return same


def _blocks(before: list[Any], after: list[Any]) -> list[tuple[int, int, int, int]]:
    """Ranges (from, to, from, to) in which two lists differ, in order; one range if they differ a lot."""
    everything = [(0, len(before), 0, len(after))]
    if not before or not after:
        return everything
    names: dict[bytes, int] = {}
    try:
        old = [names.setdefault(_frozen(item), len(names)) for item in before]
        new = [names.setdefault(_frozen(item), len(names)) for item in after]
    except ValueError:
        return everything
    edits = min(_MAX_EDITS, _EDIT_BUDGET // (len(old) + len(new)))
    matches = _matches(old, new, edits)
    if matches is None:
        return everything
    ends = [(-1, -1), *matches, (len(old), len(new))]
    return [(a + 1, b, c + 1, d) for (a, c), (b, d) in pairwise(ends) if b - a > 1 or d - c > 1]


def _matches(old: list[int], new: list[int], edits: int) -> list[tuple[int, int]] | None:
    """Index pairs of items kept on a shortest path of at most `edits` edits (Myers 1986, the greedy form)."""
    reach = {1: 0}
    history: list[dict[int, int]] = []
    for edit in range(edits + 1):
        history.append(reach)
        reach = dict(reach)
        for diagonal in range(-edit, edit + 1, 2):
            x = _step(reach, diagonal, edit)
            while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            reach[diagonal] = x
            if x >= len(old) and x - diagonal >= len(new):
                return list(_walk_back(history, len(old), len(new)))[::-1]
    return None


def _step(reach: dict[int, int], diagonal: int, edit: int) -> int:
    """Where the path with one edit more enters `diagonal`: by an insertion, else by a removal."""
    down = diagonal == -edit or (diagonal != edit and reach[diagonal - 1] < reach[diagonal + 1])
    return reach[diagonal + 1] if down else reach[diagonal - 1] + 1


def _walk_back(history: list[dict[int, int]], x: int, y: int) -> Iterator[tuple[int, int]]:
    for edit in range(len(history) - 1, -1, -1):
        diagonal = x - y
        entry = _step(history[edit], diagonal, edit)
        while x > max(entry, 0) and y > 0:
            x, y = x - 1, y - 1
            yield x, y
        if edit:
            down = diagonal == -edit or (
                diagonal != edit and history[edit][diagonal - 1] < history[edit][diagonal + 1]
            )
            x, y = (x, y - 1) if down else (x - 1, y)


# strings


def _text_change(before: str, after: str) -> dict[str, Any]:
    most = min(len(before), len(after))
    head = _alike(most, lambda n: before[:n] == after[:n])
    tail = _alike(most - head, lambda n: before[len(before) - n :] == after[len(after) - n :])
    return {"text": [head, len(before) - head - tail, after[head : len(after) - tail]]}


def _alike(most: int, alike: Callable[[int], bool]) -> int:
    """The largest n up to `most` with `alike(n)`, which holds up to some n and not beyond."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if alike(middle) else (low, middle - 1)
    return low


# applying


def _patched(value: JSON, change: dict[str, Any]) -> JSON:
    if "value" in change:
        return copied(change["value"])
    if isinstance(value, dict) and change.keys() <= {"remove", "at", "set", "place"}:
        return _patched_dict(value, change)
    if isinstance(value, list) and change.keys() <= {"at", "splice", "append"}:
        return _patched_list(value, change)
    if isinstance(value, str) and change.keys() == {"text"}:
        start, gone, text = change["text"]
        return value[: _within(value, start)] + text + value[_within(value, start + gone) :]
    raise ValueError(f"{sorted(change)} for a value of type {type(value).__name__}")


def _patched_dict(value: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    for key in change.get("remove", ()):
        del value[key]
    for key, part in change.get("at", {}).items():
        value[key] = _patched(value[key], part)
    for key, item in change.get("set", {}).items():
        value[key] = copied(item)
    places = change.get("place")
    if not places:
        return value
    placed = {key for _, key in places}
    order = [key for key in value if key not in placed]
    for index, key in places:
        order.insert(index, key)
    return {key: value[key] for key in order}


def _patched_list(value: list[Any], change: dict[str, Any]) -> list[Any]:
    for index, part in change.get("at", ()):
        value[index] = _patched(value[index], part)
    for start, gone, items in reversed(change.get("splice", ())):
        value[_within(value, start) : _within(value, start + gone)] = copied(items)
    value.extend(copied(change.get("append", [])))
    return value


def _within(value: Sequence[Any], index: int) -> int:
    if not 0 <= index <= len(value):
        raise IndexError(f"{index} is outside 0..{len(value)}")
    return index
