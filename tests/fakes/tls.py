"""A certificate made on the spot, and a listener that speaks TLS with it."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.fakes.listener import Listener, listener


def make_certificate(folder: Path, *, host: str = "127.0.0.1") -> Path:
    """Return a file with a key and a certificate for `host`, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fake")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "fake.pem"
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


@contextmanager
def tls_listener(
    certificate: Path, answer: Callable[[socket.socket], None]
) -> Iterator[Listener]:
    """Listen with TLS; `answer` gets the secure connection after a request."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with listener(answer=answer) as found:
        found.wrap = lambda taken: context.wrap_socket(taken, server_side=True)
        yield found
