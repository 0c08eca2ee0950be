"""What leads out of a page: links to files of the repository that are elsewhere in the site, scripts of a network."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOREIGN_SCRIPT = re.compile(r"<script[^>]*\bsrc=[\"']https?://[^>]*>\s*</script>")
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page, config, files) -> str:
    """Return a page whose links lead to pages of the site, or say which file of the repository is meant."""
    by_path = {os.path.normpath(file.abs_src_path): file for file in files if file.abs_src_path}
    here = Path(page.file.abs_src_path).parent

    def replaced(match: re.Match) -> str:
        text, target, fragment = match[1], match[2], match[3] or ""
        path = os.path.normpath(here / target)
        if re.match(r"[a-z]+:", target) or Path(path).is_relative_to(os.path.normpath(config["docs_dir"])):
            return match[0]
        if path in by_path:
            return f"[{text}]({os.path.relpath(by_path[path].src_uri, Path(page.file.src_uri).parent)}{fragment})"
        return f"{text} (`{Path(path).relative_to(ROOT)}` in the repository)"

    return LINK.sub(replaced, markdown)


def on_page_content(html: str, page, config, files) -> str:
    """Return a page without the MathJax that notebooks load from a network: our formulas are text."""
    return FOREIGN_SCRIPT.sub("", html)
