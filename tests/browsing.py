"""A page in a real browser."""

import shutil
from pathlib import Path

from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# To wait for: a chart is not what it was. A page that never draws it anew fails after half a minute.
REDRAWN = "([chart, before]) => document.querySelector(chart).innerHTML != before"


def opened(browser: Browser, file: Path, width: int, scheme: str) -> tuple[Page, list[str]]:
    """The page, and everything that went wrong on it or left it."""
    shown, heard = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme), []  # pyright: ignore
    shown.on("console", lambda message: heard.append(message.text))
    shown.on("pageerror", lambda problem: heard.append(str(problem)))
    shown.on("request", lambda request: heard.append(request.url) if request.url != file.as_uri() else None)
    shown.goto(file.as_uri())
    shown.wait_for_selector("body[data-drawn=yes]", timeout=30_000)
    return shown, heard
