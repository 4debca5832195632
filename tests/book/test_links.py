"""External links against a server on this machine: no test needs a network."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from book.layout import Book
from tools import check_links


class Answers(BaseHTTPRequestHandler):
    """Paths say what they answer: ``/404``, ``/get-only``, ``/slow``; all others are there."""

    asked: list[str]  # class attribute set per server

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        if self.path == "/slow":
            time.sleep(1.0)
        status = int(self.path[1:]) if self.path[1:].isdigit() else 200
        if self.path == "/get-only" and self.command == "HEAD":
            status = 405
        if self.path == "/moved":
            status = 302
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/here")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """A server without https, which the checker is told to accept; its address and what it was asked."""
    asked: list[str] = []
    handler = type("Handler", (Answers,), {"asked": asked})
    monkeypatch.setattr(check_links, "SCHEMES", ("https", "http"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", asked
        running.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/here", ""),
        ("/moved", ""),
        ("/get-only", ""),
        ("/404", "answer 404"),
        ("/403", "refused 403"),
        ("/slow", "no answer"),
    ],
)
def test_one_address(server: tuple[str, list[str]], path: str, says: str) -> None:
    """There, moved, only for GET, gone, refused, too slow."""
    found = check_links.fault(server[0] + path, seconds=0.3)
    assert found.startswith(says)
    assert bool(found) == bool(says)


def test_a_page_is_asked_for_only_where_its_head_is_refused(server: tuple[str, list[str]]) -> None:
    address, asked = server
    check_links.fault(f"{address}/here")
    check_links.fault(f"{address}/get-only")
    assert asked == ["HEAD /here", "HEAD /get-only", "GET /get-only"]


def test_no_server_and_no_https(server: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Port 9 of this machine answers nothing; without the fixture's leave plain http is a fault."""
    assert check_links.fault("http://127.0.0.1:9/", seconds=1).startswith("no answer: ")
    monkeypatch.setattr(check_links, "SCHEMES", ("https",))
    assert check_links.fault(f"{server[0]}/here") == "it is not https"


def test_a_book(server: tuple[str, list[str]], mini: Book, capsys: pytest.CaptureFixture[str]) -> None:
    """Links wherever they stand, with file and line; each address is tried once; the status is 0 but for --strict."""
    address, asked = server
    page = mini.source / "en" / "second.md"
    text = page.read_text("utf8")
    links = f"""
A [good one]({address}/here) and a
[bad one]({address}/404#part).

```{{note}}
A bare <{address}/404> and {address}/403
```

`{address}/500` is code.
"""
    page.write_text(text + links, "utf8")
    line = text.count("\n") + 3
    bibliography = mini.source / "references.bib"
    bibliography.write_text(f"@misc{{a, title={{A}},\n url={{{address}/410}}}}\n", "utf8")
    assert check_links.main(["--root", str(mini.root)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown == [
        f"book/en/second.md:{line}: {address}/404#part: answer 404 Not Found",
        f"book/en/second.md:{line + 3}: {address}/404: answer 404 Not Found",
        f"book/references.bib:2: {address}/410: answer 410 Gone",
        f"book/en/second.md:{line + 3}: {address}/403: refused 403 Forbidden",
        "4 addresses: 3 link(s) broken, 1 not shown to programs.",
    ]
    assert sorted(asked) == sorted(
        [f"{method} {path}" for method in ("HEAD", "GET") for path in ("/404", "/403", "/410")] + ["HEAD /here"]
    )
    assert check_links.main(["--root", str(mini.root), "--strict"]) == 1


def test_identifiers_of_references_are_addresses(mini: Book) -> None:
    """DOI and arXiv ids lead to their registries."""
    text = "@misc{a, title={A},\n doi={10.1000/182},\n note={arXiv:2407.17032v2}}\n"
    (mini.source / "references.bib").write_text(text, "utf8")
    found = {(link.line, link.url) for link in check_links.links(mini)}
    assert found == {(2, "https://doi.org/10.1000/182"), (3, "https://arxiv.org/abs/2407.17032")}


def test_without_a_network(mini: Book, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All hosts silent: it is said once, and the status stays 0."""
    monkeypatch.setattr(check_links, "fault", lambda url, seconds: "no answer: unreachable")
    (mini.source / "references.bib").write_text("@misc{a, doi={10.1000/182}}\n", "utf8")
    assert check_links.main(["--root", str(mini.root)]) == 0
    assert "No host answered: is there a network?" in capsys.readouterr().out
