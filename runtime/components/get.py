"""Getting components: those that are missing, side by side, each once for each version."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from diapause.runtime.components.cache import Cache
from diapause.runtime.components.manifest import Component, pick
from diapause.runtime.components.recipes import debian, prefix, script
from diapause.runtime.components.tool import Tool
from diapause.runtime.errors import InvalidArgument
from diapause.runtime.linux.locks import Lock

Say = Callable[[str], None]
Recipe = Callable[[Component, Path, Path, Tool], None]
_RECIPES: dict[str, Recipe] = {"debian": debian.make, "prefix": prefix.make, "script": script.make}


def get(components: Mapping[str, Component], names: Sequence[str], cache: Cache, say: Say) -> dict[str, Path]:
    """The folders of the named components, in their order. Raises the first DiapauseError of any of them."""
    wanted = [pick(components, name) for name in names]
    with ThreadPoolExecutor(max_workers=max(1, len(wanted))) as pool:
        folders = list(pool.map(lambda component: ensure(component, cache, say), wanted))
    return dict(zip(names, folders, strict=True))


def ensure(component: Component, cache: Cache, say: Say) -> Path:
    """The folder of a component; made now if it is missing, by us or by whoever is at it already."""
    if found := cache.find(component):
        return found
    with _locked(component, cache, say):
        return cache.find(component) or _make(component, cache, say)


def _make(component: Component, cache: Cache, say: Say) -> Path:
    if component.recipe not in _RECIPES:
        known = ", ".join(_RECIPES)
        why = f"unknown recipe {component.recipe}"
        raise InvalidArgument("manifest-malformed", f"component {component.name}", why, f"known are: {known}")
    say(f"getting {component.name}: {component.about}")
    started = time.monotonic()
    made = cache.temporary(component)
    try:
        tool = Tool(f"component {component.name}", cache.log(component))
        _RECIPES[component.recipe](component, made, cache.downloads(component), tool)
        place = cache.publish(component, made)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    say(f"got {component.name} in {time.monotonic() - started:.1f} s")
    return place


def _locked(component: Component, cache: Cache, say: Say) -> Lock:
    waiting = False
    while (lock := cache.try_lock(component)) is None:
        if not waiting:
            say(f"{component.name}: another process is getting it, waiting")
        waiting = True
        time.sleep(0.2)
    return lock
