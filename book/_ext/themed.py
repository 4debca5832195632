"""Figures in the colours of the page."""

from __future__ import annotations

import re

EVERYWHERE = '<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>'
"""What matplotlib writes into each figure. Inside a page it would be a rule for all of it, and a browser that meets a
new rule for every element begins again with the styles and the layout of the page. Elements inherit the same from the
figure itself."""


def themed_svg(svg: str, alternative: str, prefix: str) -> str:
    """A figure of matplotlib as inline SVG that follows the page's colour mode.

    Black becomes ``currentColor``; the series' own colours are chosen in ``figures.mplstyle`` to be readable on both
    backgrounds. Identifiers get a prefix, since several figures share one page.
    """
    svg = svg[svg.index("<svg") :].replace(EVERYWHERE, "")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}\1"', svg)
    svg = re.sub(r'(xlink:href|href)="#([^"]+)"', rf'\1="#{prefix}\2"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", svg)
    svg = re.sub(r"(fill|stroke): ?#000000", r"\1: currentColor", svg)
    # Glyphs and ticks have no colour of their own: they would stay black.
    label = alternative.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    own = 'fill="currentColor" stroke-linejoin="round" stroke-linecap="butt"'
    return svg.replace("<svg", f'<svg class="keydoor-figure" {own} role="img" aria-label="{label}"', 1)
