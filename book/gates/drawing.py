"""What is drawn in a figure of matplotlib, read from its SVG: texts with their boxes, axes, colours and the legend.

matplotlib draws letters as outlines and writes each text into a comment before them; its groups have names such as
``axes_1``, ``matplotlib.axis_1`` and ``xtick_1``.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.etree.ElementTree import Comment, Element, TreeBuilder, XMLParser

HREF = "{http://www.w3.org/1999/xlink}href"

Matrix = tuple[float, float, float, float, float, float]
UNIT: Matrix = (1, 0, 0, 1, 0, 0)


class Box(NamedTuple):
    """Left, top, right and bottom in the units of the figure."""

    left: float
    top: float
    right: float
    bottom: float

    def within(self, other: Box, slack: float = 1.0) -> bool:
        """Whether this box lies in the other one."""
        return (
            self.left >= other.left - slack
            and self.top >= other.top - slack
            and self.right <= other.right + slack
            and self.bottom <= other.bottom + slack
        )


@dataclass
class Text:
    """A drawn text: its lines, where it is, and the box in which it is visible."""

    words: str
    box: Box | None
    visible: Box
    tick: bool
    """Whether it stands at a tick of an axis."""


@dataclass
class Axis:
    """The x or y axis of a subplot."""

    name: str
    label: str
    ticks: bool
    """Whether words or numbers stand at its ticks."""


class Paint(NamedTuple):
    """A colour, how opaque it is, and whether letters have it."""

    colour: str
    opacity: float
    letters: bool


@dataclass
class Drawing:
    """A figure."""

    texts: list[Text] = field(default_factory=list)
    axes: list[Axis] = field(default_factory=list)
    paints: list[tuple[Paint, ...]] = field(default_factory=list)
    """Colours of each element; one of them has to be seen: the edge of a shape, or its inside."""
    legends: list[list[tuple[str, tuple[str, ...]]]] = field(default_factory=list)
    """Of each legend, the entries: words and what their sample looks like without its colour."""


def read(svg: str) -> Drawing:
    """Read the SVG of a figure."""
    parser = XMLParser(target=TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(svg[svg.index("<svg") :], parser)
    reader = _Reader(root)
    left, top, width, height = _numbers(root.get("viewBox", "0 0 0 0"))
    reader.walk(root, UNIT, Box(left, top, left + width, top + height), "")
    return reader.drawing


class _Reader:
    def __init__(self, root: Element) -> None:
        self.drawing = Drawing()
        self.named = {element.get("id"): element for element in root.iter() if element.get("id")}

    def walk(self, element: Element, matrix: Matrix, visible: Box, inside: str) -> None:
        """Read an element and what it holds.

        ``inside`` is the path of names of the groups around it.
        """
        tag, name = _tag(element), element.get("id", "")
        if tag in ("defs", "style", "metadata", "pattern", "clipPath"):
            return
        matrix = _times(matrix, _matrix(element.get("transform", "")))
        visible = self.clipped(element, visible)
        if re.fullmatch(r"text_\d+", name):
            self.drawing.texts.append(self.text(element, matrix, visible, "tick_" in inside))
        if re.fullmatch(r"matplotlib\.axis_\d+", name):
            self.drawing.axes.append(self.axis(element, inside))
        if re.fullmatch(r"legend_\d+", name):
            self.drawing.legends.append(self.legend(element))
        inside = f"{inside}/{name}" if name else inside
        self.paint(element, inside)
        if re.fullmatch(r"axes_\d+", name) and _has_picture(element):
            inside += "/picture"
        frame = next(iter(element), None) if name.startswith("legend_") else None
        for child in element:
            framed = child is frame and _is_frame(child)
            self.walk(child, matrix, visible, f"{inside}/frame" if framed else inside)

    def clipped(self, element: Element, visible: Box) -> Box:
        """What remains visible behind a rectangular clip path; an axis' own rectangle is that of the data."""
        found = re.match(r"url\(#(.+)\)", element.get("clip-path", ""))
        clip = self.named.get(found[1]) if found else None
        rectangle = clip.find("{*}rect") if clip is not None else None
        if rectangle is None:
            return visible
        x, y, width, height = (float(rectangle.get(key, "0")) for key in ("x", "y", "width", "height"))
        return Box(
            max(visible.left, x), max(visible.top, y), min(visible.right, x + width), min(visible.bottom, y + height)
        )

    def text(self, element: Element, matrix: Matrix, visible: Box, tick: bool) -> Text:
        words = _words(element)
        points = list(self.points(element, matrix, first=True))
        xs, ys = [x for x, _ in points], [y for _, y in points]
        box = Box(min(xs), min(ys), max(xs), max(ys)) if points else None
        for part in element.iter():
            visible = self.clipped(part, visible)
        return Text(words, box, visible, tick)

    def points(self, element: Element, matrix: Matrix, first: bool = False) -> Iterator[tuple[float, float]]:
        """Corners of all outlines of letters in an element."""
        if _tag(element) == "defs":
            return
        if not first:
            matrix = _times(matrix, _matrix(element.get("transform", "")))
        if _tag(element) == "use":
            glyph = self.named.get(element.get(HREF, "")[1:])
            if glyph is not None:
                x, y = float(element.get("x", "0")), float(element.get("y", "0"))
                own = _times(_times(matrix, (1, 0, 0, 1, x, y)), _matrix(glyph.get("transform", "")))
                yield from (_apply(own, corner) for corner in _corners(glyph.get("d", "")))
        for child in element:
            yield from self.points(child, matrix)

    def axis(self, element: Element, inside: str) -> Axis:
        ticks = [child for child in element if re.match(r"[xy]tick_", child.get("id", ""))]
        label = [_words(child) for child in element if re.fullmatch(r"text_\d+", child.get("id", ""))]
        name = ticks[0].get("id", "x")[0] if ticks else ""
        subplot = next((part for part in inside.split("/") if part.startswith("axes_")), "axes_1")
        return Axis(
            f"{name} axis of subplot {subplot.removeprefix('axes_')}",
            next((words for words in label if not _offset(words)), ""),
            any(_words(tick) for tick in ticks),
        )

    def legend(self, element: Element) -> list[tuple[str, tuple[str, ...]]]:
        entries: list[tuple[str, tuple[str, ...]]] = []
        look: list[str] = []
        for number, child in enumerate(element):
            if child.get("id", "").startswith("text_"):
                if look:  # else the title of the legend
                    entries.append((_words(child), tuple(look)))
                look = []
            elif number or not _is_frame(child):
                look += self.look(child)
        return entries

    def look(self, element: Element) -> Iterator[str]:
        """What a sample looks like without its colour: outline, dashes, hatching, the shape of markers."""
        markers = [part for defs in element.iter() if _tag(defs) == "defs" for part in defs]
        for part in element.iter():
            style = _style(part)
            if _tag(part) == "path" and part.get("d") and part not in markers:
                pattern = re.match(r"url\(#(.+)\)", style.get("fill", ""))
                hatch = self.named[pattern[1]].iter() if pattern and pattern[1] in self.named else ()
                strokes = [path.get("d") for path in hatch if _tag(path) == "path"]
                yield f"{_outline(part.get('d', ''))} dashes {style.get('stroke-dasharray')} hatch {strokes}"
            elif _tag(part) == "use" and (marker := self.named.get(part.get(HREF, "")[1:])) is not None:
                yield f"marker {marker.get('d')} hollow {style.get('fill') == 'none'}"

    def paint(self, element: Element, inside: str) -> None:
        """Colours of an element; those of grids, light fills and maps of colours need no contrast."""
        style = _style(element)
        letters = bool(re.search(r"/text_\d+(/|$)", inside))
        if not style or "QuadMesh" in inside or (letters and "/picture" in inside):
            return
        opacity = float(style.get("opacity", "1"))
        paints = []
        for key in ("fill", "stroke"):
            colour = self.colour(style.get(key, "none"))
            alpha = opacity * float(style.get(f"{key}-opacity", "1"))
            if colour:
                paints.append((key, Paint(colour, alpha, letters)))
        shape = dict(paints)
        light = "fill" in shape and shape["fill"].opacity < 0.5
        grid = "tick_" in inside and not letters and "stroke" in shape and shape["stroke"].opacity < 1
        outline = "/frame/" in inside and "fill" not in shape
        if paints and not light and not grid and not outline:
            self.drawing.paints.append(tuple(shape.values()))

    def colour(self, value: str) -> str:
        """A colour as #rrggbb, that of the lines for a hatched fill; empty for none and for the page's own."""
        if found := re.match(r"url\(#(.+)\)", value):
            pattern = self.named.get(found[1])
            parts = [_style(part).get("stroke", "") for part in pattern.iter()] if pattern is not None else []
            value = next((part for part in parts if part.startswith("#")), "")
        return value if re.fullmatch(r"#[0-9a-fA-F]{6}", value) else ""


def _tag(element: Element) -> str:
    return element.tag.rsplit("}", 1)[-1] if isinstance(element.tag, str) else ""


def _style(element: Element) -> dict[str, str]:
    parts = (part.partition(":") for part in element.get("style", "").split(";"))
    return {key.strip(): value.strip() for key, _, value in parts if value}


def _words(element: Element) -> str:
    lines = [str(part.text or "").strip() for part in element.iter() if part.tag is Comment]
    return " ".join(line.replace("- -", "--") for line in lines if line)


def _offset(words: str) -> bool:
    """Whether a text beside an axis is a power of ten or a shift, which matplotlib adds to the ticks."""
    return bool(re.fullmatch(r"[-+−×^.\de]*", re.sub(r"\\times|\\math\w+|[${}\s]", "", words)))


def _has_picture(axes: Element) -> bool:
    return any(_tag(part) == "image" or part.get("id", "").startswith("QuadMesh") for part in axes.iter())


def _is_frame(element: Element) -> bool:
    """Whether the first element of a legend is the frame around it, which has round corners."""
    path = element.find("{*}path")
    return (
        element.get("id", "").startswith("patch_") and path is not None and bool(re.search("[QC]", path.get("d", "")))
    )


def _outline(d: str) -> str:
    """An outline wherever it lies."""
    numbers = _numbers(d)
    moved = [round(number - numbers[place % 2], 1) + 0.0 for place, number in enumerate(numbers)]
    return f"{re.sub(r'[^A-Za-z]', '', d)} {moved}"


def _numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", text)]


def _matrix(transform: str) -> Matrix:
    whole = UNIT
    for name, inner in re.findall(r"(\w+)\(([^)]*)\)", transform):
        numbers = _numbers(inner)
        if name == "translate":
            part: Matrix = (1, 0, 0, 1, numbers[0], numbers[1] if len(numbers) > 1 else 0)
        elif name == "scale":
            part = (numbers[0], 0, 0, numbers[-1], 0, 0)
        elif name == "rotate":
            cosine, sine = math.cos(math.radians(numbers[0])), math.sin(math.radians(numbers[0]))
            part = (cosine, sine, -sine, cosine, 0, 0)
        elif name == "matrix":
            part = (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])
        else:
            raise ValueError(f"the transform {name} is not known")
        whole = _times(whole, part)
    return whole


def _times(one: Matrix, two: Matrix) -> Matrix:
    a, b, c, d, e, f = one
    g, h, i, j, k, m = two
    return (a * g + c * h, b * g + d * h, a * i + c * j, b * i + d * j, a * k + c * m + e, b * k + d * m + f)


def _apply(matrix: Matrix, point: tuple[float, float]) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    x, y = point
    return a * x + c * y + e, b * x + d * y + f


def _corners(outline: str) -> list[tuple[float, float]]:
    """The corners of the box around an outline; the letters of matplotlib have absolute coordinates only."""
    numbers = _numbers(outline)
    xs, ys = numbers[::2], numbers[1::2]
    if not ys:
        return []
    return [(x, y) for x in (min(xs), max(xs)) for y in (min(ys), max(ys))]
