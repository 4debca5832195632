"""Figures in the colours of the page."""

from __future__ import annotations

import re


def themed_svg(svg: str, alternative: str, prefix: str) -> str:
    """A figure of matplotlib as inline SVG that follows the page's colour mode.

    Black becomes ``currentColor``; the series' own colours are chosen in ``figures.mplstyle`` to be readable on both
    backgrounds. Identifiers get a prefix, since several figures share one page.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}\1"', svg)
    svg = re.sub(r'(xlink:href|href)="#([^"]+)"', rf'\1="#{prefix}\2"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", svg)
    svg = re.sub(r"(fill|stroke): ?#000000", r"\1: currentColor", svg)
    # Glyphs and ticks have no colour of their own: they would stay black.
    label = alternative.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return svg.replace("<svg", f'<svg class="keydoor-figure" fill="currentColor" role="img" aria-label="{label}"', 1)
