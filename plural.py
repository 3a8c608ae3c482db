"""`from plural import X`: every word of `plural_gym` under the name that worlds and notebooks write.

It hands out the same objects, each on first use, and holds nothing of its own. One module rather than a
folder, so that it never overwrites another distribution's package of this name.
"""

from typing import Any

import plural_gym


def __getattr__(name: str) -> Any:
    # Other dunders stay unanswered: with a `__path__`, `import plural.app` would load a second `app`.
    if name.startswith("__") and name not in ("__all__", "__version__"):
        raise AttributeError(f"module 'plural' has no attribute {name!r}")
    return getattr(plural_gym, name)


def __dir__() -> list[str]:
    return dir(plural_gym)
