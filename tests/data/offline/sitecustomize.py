"""Loaded by Python at start where this folder is on the path: no connection leaves the machine.

The kernel's own channels use the loopback interface and stay open.
"""

import ipaddress
import socket

_connect = socket.socket.connect


def connect(self, address):
    """Refuse every address but those of this machine."""
    if self.family in (socket.AF_INET, socket.AF_INET6):
        try:
            local = ipaddress.ip_address(address[0]).is_loopback
        except ValueError:
            local = address[0] == "localhost"
        if not local:
            raise OSError(f"a page of the book tried to reach {address[0]!r}: pages run without a network")
    return _connect(self, address)


def getaddrinfo(host, *arguments, **options):
    """Refuse to look up names."""
    if host in (None, "localhost", "127.0.0.1", "::1", ""):
        return _getaddrinfo(host, *arguments, **options)
    raise OSError(f"a page of the book tried to look up {host!r}: pages run without a network")


_getaddrinfo = socket.getaddrinfo
socket.socket.connect = connect
socket.getaddrinfo = getaddrinfo
