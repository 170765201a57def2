"""The results of `speed` as a table for docs/benchmarks.md."""

from typing import Any

GB = 1e9


def table(result: dict[str, object]) -> str:
    """Markdown; what was not measured has a dash."""
    entries: Any = result.get("entries", {})
    driver = entries.get("driver and CRIU", {})
    rows = ["| what | down, s | pause, s | first step after, s | driver + CRIU ÷ this | peak memory, GB |",
            "|---|---|---|---|---|---|"]  # fmt: skip
    for name, entry in entries.items():
        if any(key in entry for key in ("checkpoint_s", "suspend_s")):
            rows.append(_row(name, entry, driver))
    lines = [f"Engine `{result.get('engine')}`, {result.get('gigabytes')} GB.", "", *rows]
    lines += ["", *_phases(entries), *_prices(entries), *_steps(entries), *_added(entries)]
    failed = {name: e.get("error") for name, e in entries.items() if not e.get("ok", True)}
    lines += [f"Failed: {name}: {str(error)[:300]}" for name, error in failed.items()]
    return "\n".join(lines) + "\n"


def _row(name: str, entry: dict[str, Any], driver: dict[str, Any]) -> str:
    down = entry.get("checkpoint_s", entry.get("suspend_s"))
    up = entry.get("first_step_s", entry.get("restore_s", entry.get("resume_s")))
    times = f"{_times(driver.get('checkpoint_s'), down)} · {_times(driver.get('first_step_s'), up)}"
    cells = (name, down, entry.get("pause_s"), up, times if entry is not driver else None,
             _gigabytes(entry.get("peak_host_bytes")))  # fmt: skip
    return f"| {' | '.join('-' if cell is None else str(cell) for cell in cells)} |"


def _times(theirs: float | None, ours: float | None) -> str:
    return f"{theirs / ours:.1f}" if theirs and ours else "-"


def _gigabytes(value: int | None) -> str | None:
    return None if value is None else f"{value / GB:.2f}"


def _phases(entries: dict[str, Any]) -> list[str]:
    """Where the time goes, from the manifests."""
    lines = []
    for name, entry in entries.items():
        phases = entry.get("phases")
        if phases:
            texts = (
                f"{p['name']} {p['ms']:.0f} ms" + (f" ({p['bytes'] / GB:.2f} GB)" if p.get("bytes") else "")
                for p in phases
            )
            lines += [f"{name}: {', '.join(texts)}.", ""]
    return lines


def _prices(entries: dict[str, Any]) -> list[str]:
    price = entries.get("price", {})
    if "ratios" not in price:
        return []
    rows = ["| call | driver | library | ratio |", "|---|---|---|---|"]
    for name, ratio in price["ratios"].items():
        unit = "GB/s" if name in ("down", "up") else "ns"
        cells = f"{price['native'][name]} {unit} | {price['library'][name]} {unit} | {ratio}"
        rows.append(f"| {name} | {cells} |")
    return [*rows, ""]


def _steps(entries: dict[str, Any]) -> list[str]:
    steps = entries.get("steps", {})
    if "ratio_p10" not in steps:
        return []
    return [
        f"A step of the eager training in a container: without it {steps['without_ms']} ms, with the library "
        f"{steps['library_ms']} ms; ratio of the low percentiles {steps['ratio_p10']}, of the medians "
        f"{steps['ratio_median']}.",
        "",
    ]


def _added(entries: dict[str, Any]) -> list[str]:
    few, many = entries.get("few allocations", {}), entries.get("50,000 allocations", {})
    if "checkpoint_s" not in few or "checkpoint_s" not in many:
        return []
    down = many["checkpoint_s"] - few["checkpoint_s"]
    up = many["restore_s"] - few["restore_s"]
    return [f"50,000 allocations add {down:.2f} s to a dump and {up:.2f} s to a restore.", ""]
